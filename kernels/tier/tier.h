/* What one instruction set is asked to do: a tile of rows, a group of query heads, and the table of
 * functions. */
#ifndef KVB_TIER_H
#define KVB_TIER_H

#include "base/sum.h"
#include "tier/tile.h"

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

/* ---- a group: query rows that share a KV head ------------------------------------------------ */

/* The q of a group as whole numbers, or as words of bf16. */
typedef struct kvb_prepared {
    /* what a whole one is worth; NaN where q is not finite. Of packed rows it stands with the
     * codes, */
    float step[Q_ROWS];
    int32_t first[Q_ROWS]; /* and so does what a score's sum begins with */
    _Alignas(LINE) int8_t codes[];
} kvb_prepared;

/* Room for them with steps and beginnings, seven bytes an element; or for as many floats as q has.
 */
static inline int64_t prepared_bytes(int64_t dim)
{
    return at_least((int64_t)sizeof(kvb_prepared) + 7 * Q_ROWS * round_up(dim, 2 * LINE),
                    Q_ROWS * round_up(dim, LANES) * (int64_t)sizeof(float));
}

/* Where q of a group has an element of one of its rows. */
static inline int64_t q_index(int64_t d, int64_t q_row, int64_t slots, int64_t part)
{
    return (d / part * slots + q_row) * part + d % part;
}

/* Softmax state of up to Q_ROWS query rows that share a KV head: one for each query of a sequence
 * and each of its heads. */
typedef struct kvb_group {
    int32_t q_rows;
    int32_t slots; /* q_rows rounded up to a class: 1, 2, 4 or 8 */
    int32_t k_dim, v_dim;
    int64_t k_pad, v_pad; /* dims rounded up to LANES */
    /* elements of a row that lie side by side in q: as the tier has them, of `dot` k_pad */
    int64_t part;
    /* [k_pad / part][slots][part], times scale * log2(e); zero behind dim and behind q_rows */
    const float *q;
    /* [Q_ROWS], what each attends to: tokens 0 .. kept, and first .. end; but of those from
     * `newest` on only those whose bit is set in its word */
    int64_t *kepts, *firsts, *ends;
    uint32_t *words;
    int64_t newest; /* behind all tokens where no mask is a tree */
    /* tokens that all of them attend to: 0 .. all_kept, and these */
    int64_t all_kept, all_from, all_to;
    /* what is done to scores before the mask, in units of log2: capped, unless 0; and a slope times
     * the tokens from its own one to the score's, [Q_ROWS] of each, or null */
    float cap;
    float *slopes;
    int64_t *owns;
    float *max; /* [Q_ROWS], of the scores so far, in units of log2 */
    float *sum; /* [Q_ROWS][LANES], lane-wise */
    /* [Q_ROWS], what the last softmax asks the accumulators to be multiplied by */
    float *rescale;
    float *acc; /* [slots][v_pad] */
    union {     /* what `prepare_query` of a QK half makes of q, or null */
        kvb_prepared *prepared;
        /* floats in the order in which the elements of rows are loaded: isa/row/deal.tmpl.c */
        float *dealt;
    };
} kvb_group;

/* Tokens of a tile up to the last of the first ones that a query row keeps; in front of the others
 * that it attends to; and up to the last of those: 0 where that lies before it. */
static inline int32_t kvb_kept_of(const kvb_tile *tile, const kvb_group *group, int q_row)
{
    const int64_t left = group->kepts[q_row] - tile->first;
    return (int32_t)at_least(tile->lead, at_most(tile->count, left));
}
static inline int32_t kvb_lead_of(const kvb_tile *tile, const kvb_group *group, int q_row)
{
    const int64_t lead = group->firsts[q_row] - tile->first;
    return (int32_t)at_least(tile->lead, at_most(tile->count, lead));
}
static inline int32_t kvb_attended_of(const kvb_tile *tile, const kvb_group *group, int q_row)
{
    const int64_t left = group->ends[q_row] - tile->first;
    return (int32_t)at_least(0, at_most(tile->count, left));
}

/* Whether some score of a tile is to be -inf: of a token that a query row does not attend to, or
 * behind the last token, up to a multiple of LANES. */
static inline bool kvb_masked(const kvb_tile *tile, const kvb_group *group)
{
    const int64_t end = tile->first + tile->count;
    return tile->lead || tile->count % LANES || end > group->all_to ||
           (tile->first < group->all_from && end > group->all_kept);
}

/* Whether more is done to scores than K's scale. */
static inline bool kvb_reshaped(const kvb_group *group)
{
    return group->cap != 0.0f || group->slopes;
}

/* The first token of a tile for which a word has a bit: `count` where none has. */
static inline int32_t kvb_worded(const kvb_tile *tile, const kvb_group *group)
{
    return (int32_t)at_least(0, at_most(tile->count, group->newest - tile->first));
}
/* Whether a query row attends to such a token. */
static inline bool kvb_word_has(const kvb_tile *tile, const kvb_group *group, int q_row, int32_t t)
{
    return group->words[q_row] >> (tile->first + t - group->newest) & 1;
}

/* Index of the class of a group: 1, 2, 4 or 8 query rows, for each of which a stage is compiled. */
static inline int kvb_class(int64_t q_rows)
{
    return q_rows > 4 ? 3 : q_rows > 2 ? 2 : q_rows > 1 ? 1 : 0;
}

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

/* Rows turned for more query rows than a call folds: tokens of K at a time, and of V. */
enum { TURNED = 64, TURNED_RUN = 256 };
/* Of V, tokens first .. end, each a multiple of LANES, and the line of each row from byte `at` on.
 */
typedef struct kvb_turned {
    int32_t first, end;
    int64_t at;
} kvb_turned;
/* Bytes of a slice: two lines for every `together` tokens. */
static inline int64_t kvb_turned_slice(const kvb_turned *piece, int64_t together)
{
    return (piece->end - piece->first) / together * 2 * LINE;
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
    /* TURNED tokens from `first` on into scratch that the next function reads, for more query rows
     * than a call folds; null where the tier does not */
    void (*turn)(const kvb_tile *tile, int32_t first, int64_t dim, uint8_t *to);
    /* scores of the first `count` of them */
    void (*turned[CLASSES])(const kvb_group *group, const uint8_t *from, int32_t count,
                            float *scores);
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
    /* as of kvb_qk; `weigh`, once for a tile, makes p what the last one wants */
    void (*turn)(const kvb_tile *tile, kvb_turned piece, uint8_t *to);
    void (*weigh)(const kvb_tile *tile, const kvb_group *group, float *p);
    void (*turned[CLASSES])(const kvb_group *group, kvb_turned piece, const uint8_t *from,
                            const float *p);
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
