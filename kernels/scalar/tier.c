/* The table of the scalar tier. Group classes differ in nothing here: a loop over heads serves all
 * of them, and one function K in rows and K transposed. */
#include "scalar/scalar.h"

#define STAGES(word, read)                                                             \
    static void qk_##word(const kvb_tile *t, const kvb_group *g, float *s)             \
    {                                                                                  \
        kvb_scalar_qk(read, t, g, s);                                                  \
    }                                                                                  \
    static void pv_##word(const kvb_tile *t, const kvb_group *g, const float *p)       \
    {                                                                                  \
        kvb_scalar_pv(read, t, g, p);                                                  \
    }                                                                                  \
    static void decode_##word(const uint8_t *row, float scale, int64_t dim, float *to) \
    {                                                                                  \
        kvb_scalar_decode(read, row, scale, dim, to);                                  \
    }
#define DTYPE(word, name, ...)                                        \
    STAGES(word, DTYPE_##name)                                        \
    static void perhead_##word(const kvb_tile *t, const kvb_group *g) \
    {                                                                 \
        kvb_scalar_perhead(DTYPE_##name, t, g);                       \
    }                                                                 \
    static void encode_##word(const kvb_encode *rows) { kvb_scalar_encode(DTYPE_##name, rows); }
#define DOT(word, name)                                                                           \
    static void prepare_##word(const kvb_group *g) { kvb_scalar_prepare_query(DTYPE_##name, g); } \
    static void dot_##word(const kvb_tile *t, const kvb_group *g, float *s)                       \
    {                                                                                             \
        kvb_scalar_qk_dot(DTYPE_##name, t, g, s);                                                 \
    }                                                                                             \
    static void dot_pv_##word(const kvb_tile *t, const kvb_group *g, const float *p)              \
    {                                                                                             \
        kvb_scalar_pv_dot(DTYPE_##name, t, g, p);                                                 \
    }

KVB_DTYPES(DTYPE)
STAGES(round16, READ_ROUND16)
DOT(i8, I8)
KVB_DOT_PACKS(DOT)

#define ALL(function) {function, function, function, function}
#define SHARED .qk_heads = HEADS, .qk_t_heads = HEADS, .pv_heads = HEADS, .k_step = 1, .v_step = 1
#define FLOATS(word) .qk = ALL(qk_##word), .pv = ALL(pv_##word), .decode = decode_##word, SHARED
#define ROWS(word, name, ...) \
    [DTYPE_##name] = {FLOATS(word), .perhead = perhead_##word, .encode = encode_##word},
#define DOTS(word) .prepare_query = prepare_##word, .qk = ALL(dot_##word), .qk_t = ALL(dot_##word)
#define WHOLE(word) {DOTS(word), .pv = ALL(dot_pv_##word), SHARED}
#define PACKS(word, name) .rows[READ_DOT_##name] = WHOLE(word),

const kvb_tier kvb_tier_scalar = {
    .rows = {KVB_DTYPES(ROWS)},
    .rows[DTYPE_F32].qk_t = ALL(qk_f32),
    .rows[DTYPE_F16].qk_t = ALL(qk_f16),
    .rows[DTYPE_BF16].qk_t = ALL(qk_bf16),
    .rows[DTYPE_I8].qk_t = ALL(qk_i8),
    .rows[READ_ROUND16] = {FLOATS(round16)},
    .rows[READ_DOT_I8] = WHOLE(i8),
    KVB_DOT_PACKS(PACKS).max = kvb_scalar_max,
    .exp = kvb_scalar_exp,
    .twin = kvb_scalar_twin,
    .read = kvb_scalar_read,
    .write = kvb_scalar_write,
    .write_nt = kvb_scalar_write_nt,
    .copy = kvb_scalar_copy,
    .copy_nt = kvb_scalar_copy_nt,
    .triad = kvb_scalar_triad,
    .flops = kvb_scalar_flops,
    .dot8 = kvb_scalar_dots,
};
