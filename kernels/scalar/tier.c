/* The table of the scalar tier. Group classes differ in nothing here: a loop over heads serves all of them. */
#include "scalar/scalar.h"

#define FUNCTIONS(dtype, name, ...) FUNCTIONS_OF(dtype, DTYPE_##name)
#define FUNCTIONS_OF(dtype, index)                                                                                    \
    static void qk_##dtype(const kvb_tile *tile, const kvb_group *group, float *scores)                               \
    {                                                                                                                 \
        kvb_scalar_qk(index, tile, group, scores);                                                                    \
    }                                                                                                                 \
    static void __attribute__((unused)) qk_t_##dtype(const kvb_tile *tile, const kvb_group *group, float *scores)     \
    {                                                                                                                 \
        kvb_scalar_qk_t(index, tile, group, scores);                                                                  \
    }                                                                                                                 \
    static void pv_##dtype(const kvb_tile *tile, const kvb_group *group, const float *p)                              \
    {                                                                                                                 \
        kvb_scalar_pv(index, tile, group, p);                                                                         \
    }                                                                                                                 \
    static void perhead_##dtype(const kvb_tile *tile, const kvb_group *group)                                         \
    {                                                                                                                 \
        kvb_scalar_perhead(index, tile, group);                                                                       \
    }                                                                                                                 \
    static void encode_##dtype(const kvb_encode *rows) { kvb_scalar_encode(index, rows); }                            \
    static void decode_##dtype(const uint8_t *row, float scale, int64_t dim, float *to)                               \
    {                                                                                                                 \
        kvb_scalar_decode(index, row, scale, dim, to);                                                                \
    }

#define SHARED .qk_heads = HEADS, .qk_t_heads = HEADS, .pv_heads = HEADS

#define ROWS(dtype, name, ...)                                                                                       \
    [DTYPE_##name] = {                                                                                                \
        .qk = {qk_##dtype, qk_##dtype, qk_##dtype, qk_##dtype},                                                       \
        .pv = {pv_##dtype, pv_##dtype, pv_##dtype, pv_##dtype},                                                       \
        .perhead = perhead_##dtype, .encode = encode_##dtype, .decode = decode_##dtype, SHARED,                       \
    },

#define QK_T(dtype) {qk_t_##dtype, qk_t_##dtype, qk_t_##dtype, qk_t_##dtype}

#define DOT(word, kernel)                                                                                                \
    static void prepare_query_##word(const kvb_group *group) { kvb_scalar_prepare_query(kernel, group); }                                  \
    static void qk_##word(const kvb_tile *tile, const kvb_group *group, float *scores)                                \
    {                                                                                                                 \
        kvb_scalar_qk_dot(tile, group, scores);                                                                       \
    }                                                                                                                 \
    static void qk_t_##word(const kvb_tile *tile, const kvb_group *group, float *scores)                              \
    {                                                                                                                 \
        kvb_scalar_qk_t(kernel, tile, group, scores);                                                                    \
    }                                                                                                                 \
    static void pv_##word(const kvb_tile *tile, const kvb_group *group, const float *p)                               \
    {                                                                                                                 \
        kvb_scalar_pv_dot(kernel, tile, group, p);                                                                       \
    }
#define ROWS_DOT(word)                                                                                                \
    {                                                                                                                 \
        .prepare_query = prepare_query_##word, .qk = {qk_##word, qk_##word, qk_##word, qk_##word}, .qk_t = QK_T(word),                  \
        .pv = {pv_##word, pv_##word, pv_##word, pv_##word}, SHARED,                                                   \
    }

KVB_DTYPES(FUNCTIONS)
DOT(dot8, READ_DOT8)
DOT(dot16, READ_DOT16)

const kvb_tier kvb_tier_scalar = {
    .rows = {KVB_DTYPES(ROWS)},
    .max = kvb_scalar_max,
    .exp = kvb_scalar_exp,
    .rows[READ_ROUND16] = {.qk = {kvb_scalar_qk_round16, kvb_scalar_qk_round16, kvb_scalar_qk_round16,
                                  kvb_scalar_qk_round16},
                           .pv = {kvb_scalar_pv_round16, kvb_scalar_pv_round16, kvb_scalar_pv_round16,
                                  kvb_scalar_pv_round16},
                           .decode = kvb_scalar_decode_round16, SHARED},
    .rows[DTYPE_F32].qk_t = QK_T(f32),
    .rows[DTYPE_F16].qk_t = QK_T(f16),
    .rows[DTYPE_BF16].qk_t = QK_T(bf16),
    .rows[DTYPE_I8].qk_t = QK_T(i8),
    .rows[READ_DOT8] = ROWS_DOT(dot8),
    .rows[READ_DOT16] = ROWS_DOT(dot16),
    .twin = kvb_scalar_twin,
    .read = kvb_scalar_read,
    .write = kvb_scalar_write,
    .write_nt = kvb_scalar_write_nt,
    .copy = kvb_scalar_copy,
    .copy_nt = kvb_scalar_copy_nt,
    .triad = kvb_scalar_triad,
    .flops = kvb_scalar_flops,
};
