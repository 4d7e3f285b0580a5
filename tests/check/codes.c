/* Decode every stored code, and encode every midpoint between neighbours: each byte must be that of
 * the scalar tier. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { DIM = 64 };

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Open a cache of one head with `rows` rows of DIM elements. */
static bool open_rows(rig *r, const char *dtype, int64_t rows, int32_t scale)
{
    kvb_cache shape = {.layout = word_of("layout", "head"),
                       PLANES(word_of("dtype", dtype), scale),
                       .batch = 1,
                       .kv_heads = 1,
                       .head_dim = DIM,
                       .capacity = rows,
                       .block_tokens = 1,
                       .blocks = rows};
    return rig_open(r, shape, 1);
}

static bool unpack_all(rig *r, float *k, float *v, int32_t isa)
{
    r->lengths[0] = r->cache.capacity;
    return expect(!run_unpack(&r->cache, 0, r->cache.capacity, k, v, isa, 1), "unpack: %s",
                  kvb_message());
}

/* A format whose codes are floats: sign, exponent, fraction. Without Inf, only codes whose other
 * bits are all ones are NaN. */
typedef struct floats {
    const char *dtype;
    int exponent, fraction; /* bits */
    bool no_inf;
} floats;

static uint32_t codes_of(const floats *f) { return 2u << (f->exponent + f->fraction); }

/* Return the value of a code, computed here, not by the library. */
static float value_of(const floats *f, uint32_t code)
{
    uint32_t one = 1u << f->fraction, fraction = code & (one - 1), top = (1u << f->exponent) - 1;
    uint32_t exponent = code >> f->fraction & top;
    /* exponent of the smallest subnormal, as a power of two */
    int unit = 2 - (1 << (f->exponent - 1)) - f->fraction;
    float size;
    if (exponent == top && (!f->no_inf || fraction == one - 1))
        size = f->no_inf || fraction ? NAN : INFINITY;
    else
        size = exponent ? ldexpf((float)(fraction + one), (int)exponent - 1 + unit)
                        : ldexpf((float)fraction, unit);
    return code & codes_of(f) / 2 ? -size : size;
}

static void check_decode_codes(const floats *f)
{
    rig r;
    const char *dtype = f->dtype;
    const uint32_t codes = codes_of(f), last = codes - 1, bytes = codes > 256 ? 2 : 1;
    float *k = need(codes * sizeof *k), *v = need(codes * sizeof *v);
    if (!open_rows(&r, dtype, codes / DIM, 0))
        return;
    for (uint32_t code = 0; code < codes; code++) {
        uint16_t low = (uint16_t)code, flipped = (uint16_t)(code ^ last);
        memcpy(r.cache.k.rows + code / DIM * (uint32_t)r.cache.k.token_stride + code % DIM * bytes,
               &low, bytes);
        memcpy(r.cache.v.rows + code / DIM * (uint32_t)r.cache.v.token_stride + code % DIM * bytes,
               &flipped, bytes);
    }
    for (int i = 0; tiers[i] >= 0 && unpack_all(&r, k, v, tiers[i]); i++) {
        int64_t wrong = 0, first = 0;
        for (uint32_t code = 0; code < codes; code++) {
            float right[2] = {value_of(f, code), value_of(f, code ^ last)},
                  got[2] = {k[code], v[code]};
            for (int p = 0; p < 2; p++)
                if (isnan(right[p]) ? !isnan(got[p]) : bits_of(right[p]) != bits_of(got[p]))
                    first = wrong++ ? first : (int64_t)code;
        }
        expect(!wrong, "%s %s: %ld codes decode wrongly, first %#lx", dtype,
               kvb_word("isa", tiers[i]), (long)wrong, (long)first);
    }
    rig_close(&r);
    free(k);
    free(v);
}

static void check_decode_i8(int32_t scale)
{
    rig r;
    float k[256], v[256];
    if (!open_rows(&r, "i8", 4, scale))
        return;
    static const float scales[4] = {1.0f, 0.5f, 0.0625f, 3.0f};
    static const uint16_t halves[4] = {0x3c00, 0x3800, 0x2c00, 0x4200};
    for (int code = 0; code < 256; code++) {
        r.cache.k.rows[code] = (uint8_t)code;
        r.cache.v.rows[code] = (uint8_t)(255 - code);
    }
    for (int row = 0; row < 4; row++) {
        bool wide = r.cache.k.scale_token_stride == 4;
        const void *from = wide ? (const void *)&scales[row] : (const void *)&halves[row];
        memcpy(r.cache.k.scales + row * r.cache.k.scale_token_stride, from, wide ? 4 : 2);
        memcpy(r.cache.v.scales + row * r.cache.v.scale_token_stride, from, wide ? 4 : 2);
    }
    for (int i = 0; tiers[i] >= 0 && unpack_all(&r, k, v, tiers[i]); i++) {
        int wrong = 0;
        for (int code = 0; code < 256; code++)
            wrong += k[code] != (float)(int8_t)code * scales[code / DIM] ||
                     v[code] != (float)(int8_t)(255 - code) * scales[code / DIM];
        expect(!wrong, "i8 %s: %d codes decode wrongly", kvb_word("isa", tiers[i]), wrong);
    }
    rig_close(&r);
}

/* Encode `rows` rows of `from` as K, and their negatives as V, on every tier. The bytes must be
 * those of the scalar tier. */
static void same_bytes(const char *dtype, const float *from, int64_t rows, int32_t scale)
{
    rig r;
    float *minus = need((size_t)(rows * DIM) * sizeof *minus);
    for (int64_t i = 0; i < rows * DIM; i++)
        minus[i] = -from[i];
    if (!open_rows(&r, dtype, rows, scale))
        return;
    uint8_t *right = need((size_t)r.cache.bytes);
    for (int i = -1; i < 0 || tiers[i] >= 0; i++) {
        int32_t isa = i < 0 ? word_of("isa", "scalar") : tiers[i];
        kvb_store args = {.cache = &r.cache,
                          .k = from,
                          .v = minus,
                          .tokens = rows,
                          .head_major = i & 1,
                          .isa = isa,
                          .nt = i & 1};
        memset(r.cache.k.rows, 0xa5, (size_t)r.cache.bytes);
        r.lengths[0] = 0;
        if (!expect(!run_bulk(&args, 1), "bulk %s: %s", dtype, kvb_message()))
            break;
        if (i < 0)
            memcpy(right, r.cache.k.rows, (size_t)r.cache.bytes);
        int64_t at = 0;
        while (at < r.cache.bytes && right[at] == r.cache.k.rows[at])
            at++;
        expect(at == r.cache.bytes, "%s: byte %ld differs between scalar and %s", dtype, (long)at,
               kvb_word("isa", isa));
    }
    rig_close(&r);
    free(minus);
    free(right);
}

/* For each code n: its value, the midpoint to code n+1, and one float32 step to both sides of it.
 */
static void check_midpoints(const floats *f)
{
    int64_t count = 0, room = 2 * codes_of(f) + DIM;
    float *from = need((size_t)room * sizeof *from);
    for (uint32_t code = 0; code < codes_of(f) / 2; code++) {
        float low = value_of(f, code), high = value_of(f, code + 1);
        float middle = isfinite(low) && isfinite(high) ? low / 2 + high / 2 : low;
        from[count++] = low;
        from[count++] = middle;
        from[count++] = nextafterf(middle, INFINITY);
        from[count++] = nextafterf(middle, 0);
    }
    from[count++] = 65520.0f;
    from[count++] = nextafterf(65520.0f, 0);
    from[count++] = of_bits(0x7fffffff);
    from[count++] = of_bits(0x7f800001);
    from[count++] = of_bits(0x7f7fffff);
    from[count++] = of_bits(1);
    same_bytes(f->dtype, from, count / DIM + 1, 0);
    free(from);
}

/* Rows of every magnitude and unusual ones, for formats that share a scale. */
static void check_scaled_rows(const char *dtype, int32_t scale)
{
    enum { ROWS = 256 };
    float *from = need(ROWS * DIM * sizeof *from);
    noise(from, ROWS * DIM, 5);
    for (int row = 0; row < ROWS; row++)
        for (int d = 0; d < DIM; d++)
            /* ties */
            from[row * DIM + d] = row % 8 == 0 ? (d ? 0.5f * (float)(d + 2 * row) : 127.0f)
                                               : ldexpf(from[row * DIM + d], row - ROWS / 2);
    static const uint32_t odd[] = {0x7fc00000, 0xff800000, 0x7f800000, 1,
                                   0x807fffff, 0x7f7fffff, 0x80000000};
    for (int i = 0; i < 7; i++)
        memcpy(&from[(9 + 3 * i) * DIM + 5 * i], &odd[i], 4);
    for (int d = 0; d < DIM; d++)
        from[2 * DIM + d] = 0.0f;
    same_bytes(dtype, from, ROWS, scale);
    free(from);
}

/* A format of packed rows: blocks of 32 elements, an f16 scale before codes of 8 bits, or of 4 bits
 * with 8 added. */
typedef struct blocks {
    const char *dtype;
    int64_t bytes;
} blocks;

static float value_in(const uint8_t *codes, int i, bool nibbles)
{
    return (float)(!nibbles ? (int8_t)codes[i] : (i < 16 ? codes[i] & 15 : codes[i - 16] >> 4) - 8);
}

/* Bytes count up and down through all codes, after scales of every kind. */
static void check_decode_blocks(const blocks *f)
{
    enum { BLOCKS = 32 };
    static const uint16_t halves[] = {0x3c00, 0xb800, 0x7bff, 0x0001, 0x83ff, 0x0000, 0x4200};
    static const float scales[] = {1.0f, -0.5f, 65504.0f, 0x1p-24f, -0x3ffp-24f, 0.0f, 3.0f};
    rig r;
    float k[BLOCKS * 32], v[BLOCKS * 32];
    if (!open_rows(&r, f->dtype, BLOCKS / 2, 0))
        return;
    for (int b = 0; b < BLOCKS; b++)
        for (int64_t i = 0; i < f->bytes; i++) {
            int code = (int)(b * (f->bytes - 2) + i - 2);
            r.cache.k.rows[b * f->bytes + i] = (uint8_t)(i < 2 ? halves[b % 7] >> 8 * i : code);
            r.cache.v.rows[b * f->bytes + i] =
                (uint8_t)(i < 2 ? halves[b % 7] >> 8 * i : 255 - code);
        }
    for (int isa = 0; tiers[isa] >= 0 && unpack_all(&r, k, v, tiers[isa]); isa++) {
        int wrong = 0;
        for (int i = 0; i < BLOCKS * 32; i++) {
            const uint8_t *codes = r.cache.k.rows + i / 32 * f->bytes + 2,
                          *others = r.cache.v.rows + i / 32 * f->bytes + 2;
            wrong += bits_of(k[i]) !=
                     bits_of(value_in(codes, i % 32, f->bytes < 32) * scales[i / 32 % 7]);
            wrong += bits_of(v[i]) !=
                     bits_of(value_in(others, i % 32, f->bytes < 32) * scales[i / 32 % 7]);
        }
        expect(!wrong, "%s %s: %d codes decode wrongly", f->dtype, kvb_word("isa", tiers[isa]),
               wrong);
    }
    rig_close(&r);
}

void check_codes(void)
{
    static const blocks packed[] = {{"q8_0", 34}, {"q4_0", 18}};
    for (int i = 0; i < 2; i++)
        check_decode_blocks(&packed[i]);
    static const floats formats[] = {
        {"f16", 5, 10, false}, {"bf16", 8, 7, false}, {"e4m3", 4, 3, true}, {"e5m2", 5, 2, false}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        check_decode_codes(&formats[i]);
        check_midpoints(&formats[i]);
    }
    for (int32_t scale = 0; kvb_word("scale", scale); scale++) {
        check_decode_i8(scale);
        check_scaled_rows("i8", scale);
        check_scaled_rows("q8_0", scale);
        check_scaled_rows("q4_0", scale);
    }
}
