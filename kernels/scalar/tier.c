/* The table of the scalar tier. One function serves all group classes, with a loop over query rows,
 * and both K in rows and K transposed. */
#include "scalar/scalar.h"

#define WAY(word, way)                                                                 \
    static void qk_##word(const kvb_tile *t, const kvb_group *g, float *s)             \
    {                                                                                  \
        kvb_scalar_qk(way, t, g, s);                                                   \
    }                                                                                  \
    static void pv_##word(const kvb_tile *t, const kvb_group *g, const float *p)       \
    {                                                                                  \
        kvb_scalar_pv(way, t, g, p);                                                   \
    }                                                                                  \
    static void decode_##word(const uint8_t *row, float scale, int64_t dim, float *to) \
    {                                                                                  \
        kvb_scalar_decode(way, row, scale, dim, to);                                   \
    }
#define DTYPE(word, name, ...)                                        \
    WAY(word, DTYPE_##name)                                           \
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
#define ROUNDED(word, name)                                                              \
    static void rounded_##word(const kvb_tile *t, const kvb_group *g, float *s)          \
    {                                                                                    \
        kvb_scalar_qk_rounded(DTYPE_##name, t, g, s);                                    \
    }                                                                                    \
    static void rounded_pv_##word(const kvb_tile *t, const kvb_group *g, const float *p) \
    {                                                                                    \
        kvb_scalar_pv_rounded(DTYPE_##name, t, g, p);                                    \
    }

KVB_DTYPES(DTYPE)
WAY(round16, WAY_ROUND16)
DOT(i8, I8)
KVB_DOT_PACKS(DOT)
KVB_DOT_FLOATS(ROUNDED)

#define BY_CLASS(function) {function, function, function, function}
#define HALF .half = {.most = Q_ROWS, .shared = Q_ROWS, .step = 1}
#define QK(word)                                                           \
    {HALF, .rows = BY_CLASS(qk_##word), .transposed = BY_CLASS(qk_##word), \
     .shared_transposed = Q_ROWS}
#define PV_OF(function)                                                  \
    {HALF, .rows = BY_CLASS(function), .transposed = BY_CLASS(function), \
     .shared_transposed = Q_ROWS}
#define PV(word) PV_OF(pv_##word)
#define QK_DOT(word)                                                      \
    {HALF, .prepare_query = prepare_##word, .rows = BY_CLASS(dot_##word), \
     .transposed = BY_CLASS(dot_##word), .shared_transposed = Q_ROWS}
#define PV_DOT(word) PV_OF(dot_pv_##word)

#define QK_ROW(word, name, ...) [DTYPE_##name] = QK(word),
#define PV_ROW(word, name, ...) [DTYPE_##name] = PV(word),
#define CODEC_ROW(word, name, ...) [DTYPE_##name] = {encode_##word, decode_##word},
#define PERHEAD_ROW(word, name, ...) [DTYPE_##name] = perhead_##word,
#define QK_PACKED(word, name) .qk[WAY_DOT_##name] = QK_DOT(word),
#define PV_PACKED(word, name) .pv[WAY_DOT_##name] = PV_DOT(word),
#define QK_ROUNDED(word, name)                                            \
    .qk[WAY_DOT_##name] = {HALF, .prepare_query = kvb_scalar_round_query, \
                           .rows = BY_CLASS(rounded_##word),              \
                           .transposed = BY_CLASS(rounded_##word), .shared_transposed = Q_ROWS},
#define PV_ROUNDED(word, name) .pv[WAY_DOT_##name] = PV_OF(rounded_pv_##word),

const kvb_tier kvb_tier_scalar = {
    .qk = {KVB_DTYPES(QK_ROW)},
    .qk[WAY_ROUND16] = QK(round16),
    .qk[WAY_DOT_I8] = QK_DOT(i8),
    KVB_DOT_PACKS(QK_PACKED) KVB_DOT_FLOATS(QK_ROUNDED).pv = {KVB_DTYPES(PV_ROW)},
    .pv[WAY_ROUND16] = PV(round16),
    .pv[WAY_DOT_I8] = PV_DOT(i8),
    KVB_DOT_PACKS(PV_PACKED) KVB_DOT_FLOATS(PV_ROUNDED).codecs = {KVB_DTYPES(CODEC_ROW)},
    .codecs[WAY_ROUND16].decode = decode_round16,
    .perhead = {KVB_DTYPES(PERHEAD_ROW)},
    .max = kvb_scalar_max,
    .exp = kvb_scalar_exp,
    .twin = kvb_scalar_twin,
    .read = kvb_scalar_read,
    .write = kvb_scalar_write,
    .write_nt = kvb_scalar_write_nt,
    .copy = kvb_scalar_copy,
    .copy_nt = kvb_scalar_copy_nt,
    .triad = kvb_scalar_triad,
    .compute[OP_FLOPS] = kvb_scalar_flops,
    .compute[OP_DOT8] = kvb_scalar_dots8,
    .compute[OP_DOT16] = kvb_scalar_dots16,
};
