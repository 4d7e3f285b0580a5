/* What one instruction set is asked to do with a tile of rows and a group of query rows: the table
 * of functions. */
#ifndef KVB_TIER_H
#define KVB_TIER_H

#include "base/sum.h"
#include "tier/group.h"

#pragma GCC visibility push(hidden)

/* ---- variants.c: what a variant of decode makes of a cache's rows ---------------------------- */

/* Ways to read a row, as indices of a tier's halves: each dtype as it is, then those that are of
 * one variant alone. */
#define KVB_WAY_DOT(word, name) WAY_DOT_##name,
enum {
    WAY_ROUND16 = DTYPES,
    WAY_DOT_I8,
    KVB_DOT_PACKS(KVB_WAY_DOT) WAY_DOT_FLOATS,
    WAYS_BEFORE_FLOATS = WAY_DOT_FLOATS - 1,
    KVB_DOT_FLOATS(KVB_WAY_DOT) WAYS
};

/* The way that a variant reads rows of a dtype for which it has a kernel: kvb_reads() is not
 * negative. */
int32_t kvb_way_of(int32_t variant, int32_t dtype);
/* The variant takes K and V of one dtype alone: it is no pair of halves. */
bool kvb_takes_alike(int32_t variant);

/* ---- a tier: one instruction set's version of everything that touches rows ------------------- */

/* Rows to encode: source and target each with its stride. */
typedef struct kvb_encode {
    uint8_t *to;
    int64_t to_stride;
    uint8_t
        *scale; /* of scaled formats; null: sources are in units of codes, and no scale is stored */
    int64_t scale_stride;
    int32_t scale_dtype;
    int32_t nt;
    const float *from;
    int64_t from_stride; /* floats */
    int64_t count;
    int64_t dim;
    int64_t row_bytes;
} kvb_encode;

/* Floats to rows and back. A way that is of one variant alone stores nothing. */
typedef struct kvb_codec {
    void (*encode)(const kvb_encode *rows);
    /* one row as float32: to[0 .. dim) */
    void (*decode)(const uint8_t *row, float scale, int64_t dim, float *to);
} kvb_codec;

/* A half of a row kernel: QK, by the dtype of K, or PV, by that of V. What both have in common. */
typedef struct kvb_half {
    int32_t most;   /* query rows that a call folds, at most; its functions go by kvb_class() */
    int32_t shared; /* query rows that share one load of a row; more load it again, from L1 */
    int32_t step;   /* elements of a row that a load takes: a row is read to a multiple of them */
    /* whether it takes rows of `dim` elements whole for so many query rows; null where it never
     * does */
    bool (*whole)(int64_t q_rows, int64_t dim);
    int32_t in_turn; /* most query rows for which it takes those of several KV heads in turn */
} kvb_half;

/* What is folded at a time of rows that are turned once for more query rows than a call folds: so
 * many tokens of K, and of V so many of a line of each row. */
enum { TURNED = 64, TURNED_RUN = 256 };
/* A piece of a tile: tokens first .. end, and of V the line from byte `at` on. It begins at a
 * multiple of LANES, and of V ends at one. */
typedef struct kvb_turned {
    int32_t first, end;
    int64_t at;
} kvb_turned;
/* Lines that are asked for, into L2, while a piece is multiplied: one for each of its steps, and
 * the last one again. */
typedef struct kvb_lines {
    const uint8_t *const *next, *const *last;
} kvb_lines;
/* Bytes of a slice of V: two lines for every four tokens. */
static inline int64_t kvb_turned_slice(const kvb_turned *piece)
{
    return (int64_t)(piece->end - piece->first) / 4 * 2 * LINE;
}

typedef struct kvb_qk {
    kvb_half half;
    /* at the beginning of a unit: q -> prepared or dealt; null where q is multiplied as it is */
    void (*prepare_query)(const kvb_group *group);
    /* scores[q_row * QUERY_SCORES + t] = q[q_row] . k[t], for t < count, and anything up to a
     * multiple of LANES */
    void (*rows[CLASSES])(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* the same of a tile whose K is transposed; null where no layout transposes the dtype, or where
     * the tier makes its rows floats */
    void (*transposed[CLASSES])(const kvb_tile *tile, const kvb_group *group, float *scores);
    int32_t shared_transposed; /* as `shared` */
    /* for more query rows than a call folds: turns a piece of rows, of `dim` elements, into scratch
     */
    void (*turn)(const kvb_tile *tile, kvb_turned piece, int64_t dim, uint8_t *to);
    /* and the piece's scores, times K's scales; null where the tier reads rows for each call */
    void (*turned[CLASSES])(const kvb_tile *tile, const kvb_group *group, kvb_turned piece,
                            const uint8_t *from, kvb_lines *asked, float *scores);
} kvb_qk;

/* Scores of a tile for one group, by the way that its K lies. */
static inline void kvb_score(const kvb_qk *qk, const kvb_tile *tile, const kvb_group *group,
                             float *scores)
{
    (tile->k.block ? qk->transposed : qk->rows)[kvb_class(group->q_rows)](tile, group, scores);
}

typedef struct kvb_pv {
    kvb_half half;
    /* acc[q_row] = acc[q_row] * rescale[q_row] + sum over lead <= t < count of p[q_row *
     * QUERY_SCORES + t] * v[t] */
    void (*rows[CLASSES])(const kvb_tile *tile, const kvb_group *group, const float *p);
    /* the same of a tile whose V lies in quads; null where no layout has those of the dtype, or
     * where the tier makes their rows floats */
    void (*transposed[CLASSES])(const kvb_tile *tile, const kvb_group *group, const float *p);
    int32_t shared_transposed; /* as `shared` */
    /* of packs in quads, query rows that share a load of scales: each is loaded twice, those of
     * four packs at a time. 0: with the codes */
    int32_t shared_scales;
    /* the same of V, where `weigh` has made p, once for a tile, what `turned` wants */
    void (*turn)(const kvb_tile *tile, kvb_turned piece, uint8_t *to);
    void (*weigh)(const kvb_tile *tile, const kvb_group *group, float *p);
    void (*turned[CLASSES])(const kvb_group *group, kvb_turned piece, const uint8_t *from,
                            kvb_lines *asked, const float *p);
} kvb_pv;

/* Weighted sums of a tile for one group, by the way that its V lies. */
static inline void kvb_add_up(const kvb_pv *pv, const kvb_tile *tile, const kvb_group *group,
                              const float *p)
{
    (tile->v.block ? pv->transposed : pv->rows)[kvb_class(group->q_rows)](tile, group, p);
}

/* What a read probe prefetches with its lines: nothing at distance 0. */
typedef struct kvb_ahead {
    int64_t distance; /* bytes, from a line to the one asked for */
    int32_t streams;  /* 1; or of the next `distance` bytes, a power of two, a line of each of so
                      * many runs in turn; or 0: the eighths of a share are read in turn instead */
    bool to_l2;       /* and no further, with every LINES_PER_REQUEST-th line */
} kvb_ahead;

typedef struct kvb_tier {
    kvb_qk qk[WAYS];
    kvb_pv pv[WAYS];
    kvb_codec codecs[WAYS];
    /* K and V of one dtype and one query row, token by token, online softmax: what most public CPU
     * kernels do */
    void (*perhead[DTYPES])(const kvb_tile *tile, const kvb_group *group);
    /* scores times K's scale, where it has one, capped, and with their slopes; and -inf for all
     * tokens that a query row does not attend to, up to a multiple of LANES; raises max, sets
     * rescale */
    void (*max)(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* scores -> p = exp2(score - max) in place, times V's scale where it has one; sum = sum *
     * rescale + sum of p */
    void (*exp)(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* reads every row of a tile, or block, and its scales: adds them to `sum` */
    void (*twin)(const kvb_tile *tile, kvb_sum *sum);
    /* probes on one thread's share; bytes are a multiple of LINE; nothing orders the non-temporal
     * stores of _nt */
    void (*read)(const void *from, int64_t bytes, kvb_ahead ahead, kvb_sum *sum);
    void (*write)(void *to, int64_t bytes);
    void (*write_nt)(void *to, int64_t bytes);
    void (*copy)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*copy_nt)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*triad)(void *to, const void *from, const void *from2, int64_t bytes);
    /* by op, of those that compute; returns the FLOPs done. Null where the tier has no such
     * instruction */
    double (*compute[OPS])(int64_t rounds);
    /* `part` of groups with Q_ROWS slots; that of others is LANES. 0: `k_pad` of all, query rows
     * follow each other */
    int32_t q_part;
} kvb_tier;

extern const kvb_tier kvb_tier_scalar, kvb_tier_avx2, kvb_tier_avx512, kvb_tier_neon,
    kvb_tier_sve256, kvb_tier_sve512;
/* Of avx2, `dot` in whole numbers alone. */
extern const kvb_tier kvb_tier_avx2_vnni;
/* A probe of instructions that stay in registers, and the way whose products it makes. */
static inline bool kvb_computes(int32_t op) { return op >= OP_FLOPS && op <= OP_DOT16; }
static inline int32_t kvb_way_computed(int32_t op)
{
    return op == OP_DOT16 ? WAY_DOT_BF16 : op == OP_DOT8 ? WAY_DOT_I8 : DTYPE_F32;
}
/* registry.c: null where this build has no such tier */
const kvb_tier *kvb_tier_of(int32_t isa);
/* The table that has what a tier does in a way: its own, or one of instructions that not every CPU
 * of the tier has. Both give the same bits */
const kvb_tier *kvb_tier_with(int32_t isa, int32_t way);
/* Halves of a tier, by way and plane: whether it has the one; whether this CPU has what that needs
 * beyond what the tier itself does (cpu.c); and whether rows are made floats where a group has more
 * query rows than it folds. */
bool kvb_has_half(int32_t isa, int32_t way, int32_t plane);
bool kvb_half_runs(int32_t isa, int32_t way, int32_t plane);
/* cpu.c: this CPU has what makes more of a tier's whole numbers than the tier itself needs */
bool kvb_has_more(int32_t isa);
bool kvb_widens(int32_t isa, int32_t way);
/* registry.c: refuses a tier that this build lacks, or this CPU */
int32_t kvb_check_isa(int32_t isa);

#pragma GCC visibility pop

#endif
