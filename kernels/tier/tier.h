/* A tier: the table of functions that one instruction set has for tiles of rows and groups of query
 * rows. */
#ifndef KVB_TIER_H
#define KVB_TIER_H

#include "base/sum.h"
#include "tier/group.h"

#pragma GCC visibility push(hidden)

/* ---- variants.c: how a variant of decode reads a cache's rows -------------------------------- */

/* Ways to read a row. They index the halves of a tier: first each dtype as it is, then ways that
 * only one variant has. */
#define KVB_WAY_DOT(word, name) WAY_DOT_##name,
enum {
    WAY_ROUND16 = DTYPES,
    WAY_DOT_I8,
    KVB_DOT_PACKS(KVB_WAY_DOT) WAY_DOT_FLOATS,
    WAYS_BEFORE_FLOATS = WAY_DOT_FLOATS - 1,
    KVB_DOT_FLOATS(KVB_WAY_DOT) WAYS
};

/* Return the way in which a variant reads rows of a dtype. It must have a kernel for the dtype:
 * kvb_reads() is not negative. */
int32_t kvb_way_of(int32_t variant, int32_t dtype);
/* Whether K and V must have one dtype, because the variant is not made of halves. */
bool kvb_takes_alike(int32_t variant);

/* ---- a tier: one instruction set's version of everything that touches rows ------------------- */

/* Float32 rows to encode. Strides and row_bytes are in bytes, but for from_stride. */
typedef struct kvb_encode {
    uint8_t *to;
    int64_t to_stride;
    uint8_t
        *scale; /* scaled formats: where scales go; null: no scale, sources are in units of codes */
    int64_t scale_stride;
    int32_t scale_dtype;
    int32_t nt;
    const float *from;
    int64_t from_stride; /* floats */
    int64_t count;
    int64_t dim;
    int64_t row_bytes;
} kvb_encode;

/* Convert float32 to rows and back. A way that only one variant has cannot encode. */
typedef struct kvb_codec {
    void (*encode)(const kvb_encode *rows);
    /* decode one row to float32: to[0 .. dim) */
    void (*decode)(const uint8_t *row, float scale, int64_t dim, float *to);
} kvb_codec;

/* What both halves of a row kernel have in common: QK, chosen by the dtype of K, and PV, by that of
 * V. */
typedef struct kvb_half {
    int32_t most;   /* most query rows in a call; kvb_class() chooses the function */
    int32_t shared; /* query rows that share one load of a row; others load it again, from L1 */
    int32_t step;   /* elements of a load: a row is read to a multiple of `step` */
    /* whether rows of `dim` elements are read whole for `q_rows` query rows; null = never */
    bool (*whole)(int64_t q_rows, int64_t dim);
    int32_t in_turn; /* most query rows for which rows of several KV heads can be read in turn */
} kvb_half;

/* To turn rows is to transpose them once, for more query rows than a call takes. This is done in
 * pieces: TURNED tokens of K, or one line of each of TURNED_RUN rows of V. */
enum { TURNED = 64, TURNED_RUN = 256 };
/* A piece of a tile: tokens first .. end; of V, the line from byte `at` of each row. It begins at a
 * multiple of LANES. A piece of V also ends at one. */
typedef struct kvb_turned {
    int32_t first, end;
    int64_t at;
} kvb_turned;
/* Lines to prefetch into L2 while a piece is multiplied: one with each step. After the last line,
 * the last one again. */
typedef struct kvb_lines {
    const uint8_t *const *next, *const *last;
} kvb_lines;
/* Bytes of a turned piece of V: two lines for every four tokens. */
static inline int64_t kvb_turned_slice(const kvb_turned *piece)
{
    return (int64_t)(piece->end - piece->first) / 4 * 2 * LINE;
}

typedef struct kvb_qk {
    kvb_half half;
    /* at the start of a unit: make `prepared` or `dealt` of q; null: q is multiplied as it is */
    void (*prepare_query)(const kvb_group *group);
    /* scores[q_row * QUERY_SCORES + t] = q[q_row] . k[t], for t < count; up to a multiple of LANES,
     * scores may hold anything */
    void (*rows[CLASSES])(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* the same for a tile whose K is transposed; null if no layout transposes the dtype, or if the
     * tier converts its rows to float32 */
    void (*transposed[CLASSES])(const kvb_tile *tile, const kvb_group *group, float *scores);
    int32_t shared_transposed; /* as `shared`, for `transposed` */
    /* for more query rows than a call takes: turn a piece of rows of `dim` elements into scratch */
    void (*turn)(const kvb_tile *tile, kvb_turned piece, int64_t dim, uint8_t *to);
    /* scores of a turned piece, times K's scales; null if the tier reads the rows for each call */
    void (*turned[CLASSES])(const kvb_tile *tile, const kvb_group *group, kvb_turned piece,
                            const uint8_t *from, kvb_lines *asked, float *scores);
} kvb_qk;

/* Compute the scores of a tile for one group, from K in rows or transposed. */
static inline void kvb_score(const kvb_qk *qk, const kvb_tile *tile, const kvb_group *group,
                             float *scores)
{
    (tile->k.block ? qk->transposed : qk->rows)[kvb_class(group->q_rows)](tile, group, scores);
}

typedef struct kvb_pv {
    kvb_half half;
    /* acc[q_row] = acc[q_row] * rescale[q_row]
     *              + sum over lead <= t < count of p[q_row * QUERY_SCORES + t] * v[t] */
    void (*rows[CLASSES])(const kvb_tile *tile, const kvb_group *group, const float *p);
    /* the same for a tile whose V is in quads; null if no layout has quads of the dtype, or if the
     * tier converts its rows to float32 */
    void (*transposed[CLASSES])(const kvb_tile *tile, const kvb_group *group, const float *p);
    int32_t shared_transposed; /* as `shared`, for `transposed` */
    /* packed rows in quads: query rows that share a load of scales, which are loaded for four packs
     * at a time, each scale twice. 0 = scales are loaded with the codes */
    int32_t shared_scales;
    /* as in kvb_qk, for V. `weigh` converts p for `turned`, once for a tile */
    void (*turn)(const kvb_tile *tile, kvb_turned piece, uint8_t *to);
    void (*weigh)(const kvb_tile *tile, const kvb_group *group, float *p);
    void (*turned[CLASSES])(const kvb_group *group, kvb_turned piece, const uint8_t *from,
                            kvb_lines *asked, const float *p);
} kvb_pv;

/* Add the weighted sum of a tile's V to a group's accumulators, from V in rows or in quads. */
static inline void kvb_add_up(const kvb_pv *pv, const kvb_tile *tile, const kvb_group *group,
                              const float *p)
{
    (tile->v.block ? pv->transposed : pv->rows)[kvb_class(group->q_rows)](tile, group, p);
}

/* What a read probe prefetches. */
typedef struct kvb_ahead {
    int64_t distance; /* bytes from a line to the prefetched one; 0 = no prefetch */
    int32_t streams;  /* n > 1: a line of each of n runs of the next `distance` bytes (a power of
                      * two) in turn. 0: no runs; the eighths of a share are read in turn */
    bool to_l2;       /* prefetch only into L2, with every LINES_PER_REQUEST-th line */
} kvb_ahead;

typedef struct kvb_tier {
    kvb_qk qk[WAYS];
    kvb_pv pv[WAYS];
    kvb_codec codecs[WAYS];
    /* K and V of one dtype, one query row, token by token with an online softmax, as most public
     * CPU kernels do */
    void (*perhead[DTYPES])(const kvb_tile *tile, const kvb_group *group);
    /* multiply scores by K's scales (if any), apply softcap and slopes, and set scores of masked
     * tokens and of padding up to a multiple of LANES to -inf. Raises group->max, sets rescale */
    void (*max)(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* replace scores by p = exp2(score - max), times V's scale (if any);
     * sum = sum * rescale + sum of p, where p is without the scale */
    void (*exp)(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* read every row or block of a tile and its scales, and add them to `sum` */
    void (*twin)(const kvb_tile *tile, kvb_sum *sum);
    /* probes on one thread's share. Bytes are a multiple of LINE. write_nt and copy_nt do not order
     * their non-temporal stores */
    void (*read)(const void *from, int64_t bytes, kvb_ahead ahead, kvb_sum *sum);
    void (*write)(void *to, int64_t bytes);
    void (*write_nt)(void *to, int64_t bytes);
    void (*copy)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*copy_nt)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*triad)(void *to, const void *from, const void *from2, int64_t bytes);
    /* probes that compute, by op: return the FLOPs done. Null if the tier has no such instruction
     */
    double (*compute[OPS])(int64_t rounds);
    /* elements of one query row stored side by side in q for a full group (Q_ROWS slots); smaller
     * groups use LANES. 0: each query row is contiguous in all groups */
    int32_t q_part;
} kvb_tier;

extern const kvb_tier kvb_tier_scalar, kvb_tier_avx2, kvb_tier_avx512, kvb_tier_neon,
    kvb_tier_sve256, kvb_tier_sve512;
/* Only `dot` in whole numbers of avx2, with AVX-VNNI. */
extern const kvb_tier kvb_tier_avx2_vnni;
/* Whether an op is a probe that computes in registers; and the way whose instructions it uses. */
static inline bool kvb_computes(int32_t op) { return op >= OP_FLOPS && op <= OP_DOT16; }
static inline int32_t kvb_way_computed(int32_t op)
{
    return op == OP_DOT16 ? WAY_DOT_BF16 : op == OP_DOT8 ? WAY_DOT_I8 : DTYPE_F32;
}
/* registry.c: return a tier, or null if this build lacks it. */
const kvb_tier *kvb_tier_of(int32_t isa);
/* registry.c: return the table with the functions of a way: the tier's own, or one for instructions
 * that only some of its CPUs have. Both give the same bits. */
const kvb_tier *kvb_tier_with(int32_t isa, int32_t way);
/* Whether a tier has a half; whether this CPU has the instructions that the half needs beyond its
 * tier's (cpu.c). */
bool kvb_has_half(int32_t isa, int32_t way, int32_t plane);
bool kvb_half_runs(int32_t isa, int32_t way, int32_t plane);
/* cpu.c: whether this CPU has extra instructions for whole numbers that the tier does not need. */
bool kvb_has_more(int32_t isa);
/* Whether rows are converted to float32 if there are more query rows than a call takes. */
bool kvb_widens(int32_t isa, int32_t way);
/* registry.c: refuse a tier that this build or this CPU lacks. */
int32_t kvb_check_isa(int32_t isa);

#pragma GCC visibility pop

#endif
