/* What one instruction set is asked to do: a tile of rows, a group of query heads, and the table of
 * functions. */
#ifndef KVB_TIER_H
#define KVB_TIER_H

#include "base/sum.h"
#include "cache/cache.h"
#include "tier/schedule.h"

#pragma GCC visibility push(hidden)

/* ---- variants.c: what a variant of decode makes of a cache's rows ---------------------------- */

/* Ways to read a row, as indices of a tier's `rows`: each dtype as it is, then those that are of
 * one variant alone. */
#define KVB_READ_DOT(word, name) READ_DOT_##name,
enum { READ_ROUND16 = DTYPES, READ_DOT_I8, KVB_DOT_PACKS(KVB_READ_DOT) READS };

/* The way that a variant reads rows of a dtype for which it has a kernel: kvb_reads() is not
 * negative. */
int32_t kvb_row_kernel_of(int32_t variant, int32_t dtype);
/* Whether a tier has the way, and turns rows into float32 where a group has more than HEADS heads.
 */
bool kvb_has_row_kernel(int32_t isa, int32_t row_kernel);
bool kvb_widens(int32_t isa, int32_t row_kernel);

/* ---- a tile: up to TILE tokens of one sequence and one KV head ------------------------------- */

/* Rows: where each begins, in bytes from one place. Tiles that lie alike share the list, however
 * far apart they are. */
typedef struct kvb_places {
    const uint8_t *from;
    const int64_t *at; /* [TILE] */
} kvb_places;

static inline const uint8_t *kvb_row_at(kvb_places rows, int64_t t)
{
    return rows.from + rows.at[t];
}
static inline kvb_places kvb_rows_from(kvb_places rows, int64_t t)
{
    return (kvb_places){rows.from, rows.at + t};
}

enum { FEW_HEADS = 2 }; /* most whose stages take rows that lie one behind another whole */
/* From one query head's scores to the next one's, and one KV head's: those of a token lie in
 * different sets of a cache. */
enum { QUERY_SCORES = TILE + LANES, HEAD_SCORES = HEADS * QUERY_SCORES };

/* Rows to prefetch, or for ORDER_RUNS to touch: one line for each that is consumed, never a burst.
 */
typedef struct kvb_requests {
    /* while K is consumed, and while V is: an entry for every `rows_per_entry` rows of the tile */
    kvb_places k, v;
    int64_t streams;        /* entries whose lines are asked for in turn */
    int64_t rows_per_entry; /* rows from an entry's on, that lie one behind another */
} kvb_requests;

typedef struct kvb_tile {
    /* one past the last live token; the rows behind are its own again, up to a multiple of LANES */
    int32_t count;
    /* tokens in front that are none of the tile's: below LANES, and most often 0 */
    int32_t lead;
    /* 0, or K is transposed: every LANES-th row is a block, and these are its bytes */
    int64_t k_block;
    kvb_places k, v; /* row of each token */
    /* from a row to the next, where they lie one behind another: ORDER_ROWS, ORDER_RUNS */
    int64_t stride;
    const kvb_schedule *schedule;
    kvb_requests next;    /* what the schedule asks for meanwhile; not there for ORDER_PLAIN */
    const float *k_scale; /* scaled formats only: [TILE], in the cache itself or in `scales` */
    const float *v_scale;
    float scales[2][TILE];
} kvb_tile;

/* Row t of those to prefetch, in a walk that takes whole rows. */
static inline const uint8_t *kvb_row_next(const kvb_requests *next, kvb_places rows, int64_t t,
                                          int64_t row_bytes)
{
    return kvb_row_at(rows, t / next->rows_per_entry) + t % next->rows_per_entry * row_bytes;
}

/* The hint is part of the instruction, so that the choice is a branch. */
static inline void kvb_fetch(const uint8_t *line, bool to_l2)
{
    if (to_l2)
        __builtin_prefetch(line, 0, 2);
    else
        __builtin_prefetch(line);
}

/* ---- a tier: one instruction set's version of everything that touches rows ------------------- */

/* The q of a group as whole numbers. */
typedef struct kvb_prepared {
    /* what one is worth; NaN where q is not finite. Of packed rows it stands with the codes, */
    float step[HEADS];
    int32_t first[HEADS]; /* and so does what a score's sum begins with */
    _Alignas(LINE) int8_t codes[];
} kvb_prepared;

/* Room for them with steps and beginnings, three bytes an element; or for as many floats as q has.
 */
static inline int64_t prepared_bytes(int64_t dim)
{
    const int64_t whole = (int64_t)sizeof(kvb_prepared) + 3 * HEADS * round_up(dim, LINE);
    return at_least(whole, HEADS * round_up(dim, LANES) * (int64_t)sizeof(float));
}

/* Where q of a group has an element of a head. */
static inline int64_t q_index(int64_t d, int64_t head, int64_t slots, int64_t part)
{
    return (d / part * slots + head) * part + d % part;
}

/* Softmax state of up to HEADS query heads that share a KV head. */
typedef struct kvb_group {
    int32_t heads;
    int32_t slots; /* heads rounded up to a class: 1, 2, 4 or 8 */
    int32_t dim;
    int64_t dim_pad; /* dim rounded up to LANES */
    int64_t part;    /* elements of a head that lie side by side in q */
    /* [dim_pad / part][slots][part], times scale * log2(e); zero behind dim and behind heads */
    const float *q;
    float *max; /* [HEADS], of the scores so far, in units of log2 */
    float *sum; /* [HEADS][LANES], lane-wise */
    /* [HEADS], what the last softmax asks the accumulators to be multiplied by */
    float *rescale;
    float *acc; /* [slots][dim_pad] */
    union {     /* what a way's `prepare_query` makes of q, or null */
        kvb_prepared *prepared;
        /* floats in the order in which the elements of rows are loaded: isa/row/deal.tmpl.c */
        float *dealt;
    };
} kvb_group;

/* Rows to encode: `rows` of them, source and target each with its stride. */
typedef struct kvb_encode {
    uint8_t *to;
    int64_t to_stride;
    uint8_t *scale;
    int64_t scale_stride;
    int32_t scale_dtype;
    int32_t nt;
    const float *from;
    int64_t from_stride; /* floats */
    int64_t rows;
    int64_t dim;
    int64_t row_bytes;
} kvb_encode;

/* The functions of a tier that depend on the dtype. The index of `qk` and `pv` is the group class:
 * 1, 2, 4, 8 heads. */
typedef struct kvb_rows {
    /* at the beginning of a unit: q -> prepared or dealt; null where q is multiplied as it is */
    void (*prepare_query)(const kvb_group *group);
    /* scores[head * QUERY_SCORES + t] = q[head] . k[t], for t < count, and anything up to a
     * multiple of LANES */
    void (*qk[4])(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* the same of a tile whose K is transposed; null where no layout transposes the dtype */
    void (*qk_t[4])(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* acc[head] = acc[head] * rescale[head] + sum over lead <= t < count of p[head * QUERY_SCORES +
     * t] * v[t] */
    void (*pv[4])(const kvb_tile *tile, const kvb_group *group, const float *p);
    /* one query head, token by token, online softmax: what most public CPU kernels do */
    void (*perhead)(const kvb_tile *tile, const kvb_group *group);
    void (*encode)(const kvb_encode *rows);
    /* one row as float32: to[0 .. dim) */
    void (*decode)(const uint8_t *row, float scale, int64_t dim, float *to);
    /* query heads of a group that share one load of a row, in qk, qk_t and pv; more load it again,
     * from L1 */
    int32_t qk_heads, qk_t_heads, pv_heads;
    /* elements of a row that a load takes, in qk and in pv: a row is read to a multiple of them */
    int32_t k_step, v_step;
    /* whether qk, qk_t and pv take rows of `dim` elements whole for so many query heads of a KV
     * head; null where they never do */
    bool (*whole)(int64_t heads, int64_t dim);
    int32_t in_turn; /* most query heads for which they take those of several KV heads in turn */
} kvb_rows;

/* One stage function takes groups of 1, 2, 4 or 8 heads. */
static inline int kvb_class(int64_t heads)
{
    return heads > 4 ? 3 : heads > 2 ? 2 : heads > 1 ? 1 : 0;
}

/* Scores of a tile for one group, by the way that its K lies. */
static inline void kvb_score(const kvb_rows *rows, const kvb_tile *tile, const kvb_group *group,
                             float *scores)
{
    (tile->k_block ? rows->qk_t : rows->qk)[kvb_class(group->heads)](tile, group, scores);
}

/* What a read probe prefetches with its lines: nothing at distance 0. */
typedef struct kvb_ahead {
    int64_t distance; /* bytes, from a line to the one asked for */
    int32_t streams;  /* 1; or of the next `distance` bytes, a power of two, a line of each of so
                      * many runs in turn; or 0: the eighths of a share are read in turn instead */
    bool to_l2;       /* and no further, with every LINES_PER_REQUEST-th line */
} kvb_ahead;

typedef struct kvb_tier {
    kvb_rows rows[READS];
    /* scores times k_scale (where scaled), -inf below `lead` and from `count` up to a multiple of
     * LANES; raises max, sets rescale */
    void (*max)(const kvb_tile *tile, const kvb_group *group, float *scores, bool scaled);
    /* scores -> p = exp2(score - max) in place, times v_scale where scaled; sum = sum * rescale +
     * sum of p */
    void (*exp)(const kvb_tile *tile, const kvb_group *group, float *scores, bool scaled);
    /* reads `bytes` of every K row, or its blocks, and of every V row of a tile, and its scales
     * unless they are null: adds them to `sum` */
    void (*twin)(const kvb_tile *tile, int64_t bytes, kvb_sum *sum);
    /* probes on one thread's share; bytes are a multiple of LINE; nothing orders the non-temporal
     * stores of _nt */
    void (*read)(const void *from, int64_t bytes, kvb_ahead ahead, kvb_sum *sum);
    void (*write)(void *to, int64_t bytes);
    void (*write_nt)(void *to, int64_t bytes);
    void (*copy)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*copy_nt)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*triad)(void *to, const void *from, const void *from2, int64_t bytes);
    double (*flops)(int64_t rounds); /* returns the FLOPs done */
    double (*dot8)(int64_t rounds);  /* the same of products of bytes */
    /* `part` of groups with HEADS slots; that of others is LANES. 0: `dim_pad` of all, heads follow
     * each other */
    int32_t q_part;
} kvb_tier;

extern const kvb_tier kvb_tier_scalar, kvb_tier_avx2, kvb_tier_avx512, kvb_tier_neon,
    kvb_tier_sve256, kvb_tier_sve512;
/* registry.c: null where this build has no such tier */
const kvb_tier *kvb_tier_of(int32_t isa);
/* cpu.c: whether this CPU has what a tier's way needs beyond what the tier itself does */
bool kvb_row_kernel_runs(int32_t isa, int32_t row_kernel);
/* registry.c: refuses a tier that this build lacks, or this CPU */
int32_t kvb_check_isa(int32_t isa);

#pragma GCC visibility pop

#endif
