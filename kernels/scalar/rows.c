/* Convert float32 rows to stored bytes and back. Conversions use integer arithmetic, so the
 * rounding mode does not matter. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "scalar/scalar.h"
#include "base/stream.h"
#define GATHER_LINE(to, from) stream(to, from, LINE)
#include "tier/gather.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Return value / 2^drop, to nearest, ties to even; drop in [1, 31]. */
static uint32_t round_even(uint32_t value, uint32_t drop)
{
    uint32_t kept = value >> drop, rest = value & ((1u << drop) - 1), half = 1u << (drop - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* ---- f16: 5 bits of exponent, 10 of fraction ------------------------------------------------- */

uint16_t kvb_scalar_f16(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff,
             exponent = size >> 23;
    if (size > 0x7f800000) /* NaN: quiet, with its upper payload */
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000) /* 65520: half way from the largest f16 to 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (exponent >= 113) /* normal from 2^-14 on; a carry out of the fraction raises the exponent */
        return (uint16_t)(sign | round_even(size - (112u << 23), 13));
    if (exponent < 102) /* at most a quarter of the smallest subnormal */
        return (uint16_t)sign;
    /* in units of 2^-24 */
    return (uint16_t)(sign | round_even((size & 0x7fffff) | 0x800000, 126 - exponent));
}

float kvb_scalar_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
             fraction = bits & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | (fraction ? 0x400000 : 0) | fraction << 13);
    if (exponent == 0)
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

/* ---- bf16: the upper half of a float32 ------------------------------------------------------- */

uint16_t kvb_scalar_bf16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_even(bits, 16);
}

/* ---- floats of 8 bits ---------------------------------------------------------------------------
 *
 * A sign, an exponent and a fraction; base/formats.h has their bits, and which codes are Inf and
 * NaN. Values beyond the largest finite one, and Inf, become that value. Every NaN becomes 0x7f
 * with its sign. A float32 is rounded once, not through f16. */

static uint8_t float8(const kvb_format *f, float x)
{
    /* bits of a float32's fraction that are dropped; its exponent from which on results are normal
     */
    const uint32_t drop = 16 + (uint32_t)f->exponent, least = 128 - (uint32_t)kvb_bias(f);
    uint32_t bits = bits_of(x), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint8_t)(sign | 0x7f);
    uint32_t most = bits_of(kvb_largest(f));
    size = size < most ? size : most;
    uint32_t exponent = size >> 23, shift = drop + least - exponent;
    if (exponent >= least)
        return (uint8_t)(sign | (round_even(size, drop) - ((least - 1) << (23 - drop))));
    if (shift > 24) /* less than half of the smallest subnormal */
        return (uint8_t)sign;
    /* in units of the smallest subnormal */
    return (uint8_t)(sign | round_even((size & 0x7fffff) | 0x800000, shift));
}

static float from_float8(const kvb_format *f, uint8_t code)
{
    const uint32_t drop = 16 + (uint32_t)f->exponent, least = 128 - (uint32_t)kvb_bias(f);
    uint32_t sign = (uint32_t)(code & 0x80) << 24, size = code & 0x7f,
             exponent = size >> (23 - drop), fraction = size << drop & 0x7fffff;
    if (size > (uint32_t)kvb_largest_code(f))
        return float_of(sign | 0x7f800000 | (fraction ? 0x400000 : 0) | fraction);
    if (exponent == 0) /* the fraction times the smallest normal value: 2^(least - 127) */
        return float_of(sign | bits_of((float)fraction * 0x1p-23f * float_of(least << 23)));
    return float_of(sign | (exponent + least - 1) << 23 | fraction);
}

/* ---- i8: x = code * scale, one scale per row ----------------------------------------------------
 *
 *   amax    = max |x|, where a NaN counts as 0
 *   scale   = amax * (1 / 127), at most FLT_MAX / 127 (f32) or 65504 (f16), then rounded to the
 *             scale's dtype
 *   inverse = 1 / scale, or 0 if that is not finite (a row of zeros, or with nothing above about
 *             2^-121)
 *   code    = x * inverse rounded to nearest even, within [-127, 127]; 0 for a NaN
 *
 * With scales of channels, stores divide x by its scale first: code = x / scale, rounded likewise.
 *
 * Each step is one float32 operation. So Inf, and values beyond an f16 scale, saturate, and do not
 * change their neighbours. */

float kvb_scalar_inverse(float scale)
{
    float inverse = 1.0f / scale;
    return fabsf(inverse) <= FLT_MAX ? inverse : 0.0f;
}

/* Store the scale of a row at `to`; return it as stored. */
static float put_i8_scale(const float *from, int64_t dim, int32_t scale_dtype, uint8_t *to)
{
    float amax = 0.0f;
    for (int64_t d = 0; d < dim; d++) {
        float size = fabsf(kvb_scalar_number(from[d]));
        amax = size > amax ? size : amax;
    }
    float scale = amax * (1.0f / 127.0f),
          most = scale_dtype == SCALE_F16 ? 65504.0f : FLT_MAX * (1.0f / 127.0f);
    scale = scale < most ? scale : most;
    if (scale_dtype == SCALE_F16) {
        uint16_t half = kvb_scalar_f16(scale);
        scale = kvb_scalar_from_f16(half);
        memcpy(to, &half, sizeof half);
    } else {
        memcpy(to, &scale, sizeof scale);
    }
    return scale;
}

static uint8_t i8(float x, float inverse)
{
    float code = kvb_scalar_number(x) * inverse;
    code = code > 127.0f ? 127.0f : code < -127.0f ? -127.0f : code;
    int whole = (int)code;
    float rest = fabsf(code - (float)whole);
    if (rest > 0.5f || (rest == 0.5f && (whole & 1)))
        whole += code < 0.0f ? -1 : 1;
    return (uint8_t)(int8_t)whole;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_element(int32_t dtype, float x, float inverse, uint8_t *row, int64_t d)
{
    switch (dtype) {
    case DTYPE_F32:
        memcpy((float *)(void *)row + d, &x, sizeof x);
        break;
    case DTYPE_F16:
        ((uint16_t *)(void *)row)[d] = kvb_scalar_f16(x);
        break;
    case DTYPE_BF16:
        ((uint16_t *)(void *)row)[d] = kvb_scalar_bf16(x);
        break;
    case DTYPE_I8:
        row[d] = i8(x, inverse);
        break;
    default:
        row[d] = float8(&kvb_formats[dtype], x);
    }
}

static float element(int32_t read, const uint8_t *row, float scale, int64_t d)
{
    switch (read) {
    case DTYPE_F32:
        return ((const float *)(const void *)row)[d];
    case WAY_ROUND16:
        return kvb_scalar_from_f16(kvb_scalar_f16(((const float *)(const void *)row)[d]));
    case DTYPE_F16:
        return kvb_scalar_from_f16(((const uint16_t *)(const void *)row)[d]);
    case DTYPE_BF16:
        return kvb_scalar_from_bf16(((const uint16_t *)(const void *)row)[d]);
    case DTYPE_I8:
        return (float)(int8_t)row[d] * scale;
    default:
        return kvb_formats[read].exponent ? from_float8(&kvb_formats[read], row[d])
                                          : kvb_scalar_packed(read, row, d);
    }
}

void kvb_scalar_encode(int32_t dtype, const kvb_encode *rows)
{
    const kvb_format *format = &kvb_formats[dtype];
    assert(rows->dim <= DIM_MAX && rows->row_bytes <= DIM_MAX * 4);
    assert(format->elements > 1 || rows->row_bytes % LINE == 0);
    gather lines;
    gather_begin(&lines);
    for (int64_t r = 0; r < rows->count; r++) {
        const float *from = rows->from + r * rows->from_stride;
        uint8_t *to = rows->to + r * rows->to_stride,
                *row = rows->nt ? gather_room(&lines, to) : to;
        float scale = 1.0f;
        if (format->scaled && rows->scale)
            scale = put_i8_scale(from, rows->dim, rows->scale_dtype,
                                 rows->scale + r * rows->scale_stride);
        float inverse = kvb_scalar_inverse(scale);
        memset(row, 0, (size_t)rows->row_bytes);
        if (format->elements > 1)
            kvb_scalar_pack(dtype, from, rows->dim, row);
        for (int64_t d = 0; format->elements == 1 && d < rows->dim; d++)
            put_element(dtype, from[d], inverse, row, d);
        if (rows->nt)
            gather_row(&lines, rows->row_bytes);
    }
    gather_end(&lines);
    if (rows->nt)
        stream_end();
}

void kvb_scalar_decode(int32_t read, const uint8_t *row, float scale, int64_t dim, float *to)
{
    for (int64_t d = 0; d < dim; d++)
        to[d] = element(read, row, scale, d);
}
