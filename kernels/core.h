/* What the parts of the library share: words, formats, tiles, the table of a tier, tasks. Only static inline code. */
#ifndef KVB_CORE_H
#define KVB_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dtypes.h"
#include "kvbench.h"

/* ---- words: the order here is the order of the lists in words.c ------------------------------------------------ */

enum { OP_DECODE, OP_TWIN, OP_APPEND, OP_BULK, OP_CLEAR, OP_UNPACK, OP_FILL, OP_REPACK, OP_TRANSPOSE, OP_LOGITS,
       OP_RESET, OP_READ, OP_WRITE, OP_WRITE_NT, OP_COPY, OP_COPY_NT, OP_TRIAD, OP_FLOPS, OP_LATENCY,
       OP_CLOCK, OPS };
enum { VARIANT_FLASH, VARIANT_TWOPASS, VARIANT_PERHEAD, VARIANT_ROUND16, VARIANT_DOT8, VARIANT_DOT16, VARIANTS };
enum { LAYOUT_HEAD, LAYOUT_POSITION, LAYOUT_PAGED, LAYOUT_BLOCKT, LAYOUTS };
enum { INNER_HEAD, INNER_TOKEN, INNERS };
#define KVB_DTYPE(word, name, ...) DTYPE_##name,
enum { KVB_DTYPES(KVB_DTYPE) DTYPES };
#undef KVB_DTYPE
enum { SCALE_F32, SCALE_F16, SCALES };
enum { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_NEON, ISA_SVE256, ISA_SVE512, ISAS };
enum { PAGES_BASE, PAGES_THP, PAGES_HUGE, PAGES };
enum { PREFETCH_OFF, PREFETCH_NEAR, PREFETCH_CROSS, PREFETCH_WEAVE, PREFETCHES };

enum { LINE = 64, TILE = 64, HEADS = 8, LANES = 16, DIM_MAX = 1024 };

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- status.c -------------------------------------------------------------------------------------------------- */

/* Keep the message for kvb_message() and return the code. */
int32_t kvb_fail(int32_t code, const char *format, ...) __attribute__((format(printf, 2, 3), visibility("hidden")));

#pragma GCC visibility push(hidden)

/* ---- formats.c: a dtype as bytes ------------------------------------------------------------------------------- */

typedef struct kvb_format {
    int32_t elements; /* of a block; where more than one, rows are packed */
    int32_t bytes;    /* of a block */
    bool scaled;      /* one scale per token and head */
} kvb_format;
extern const kvb_format kvb_formats[DTYPES];

/* Bytes that carry a row of `dim` elements. */
static inline int64_t kvb_payload(int32_t dtype, int64_t dim)
{
    const kvb_format *f = &kvb_formats[dtype];
    return (dim + f->elements - 1) / f->elements * f->bytes;
}
/* Bytes from a row to the next: packed ones follow at once, all others begin on a line. */
static inline int64_t kvb_row(int32_t dtype, int64_t dim)
{
    return kvb_formats[dtype].elements > 1 ? kvb_payload(dtype, dim) : round_up(kvb_payload(dtype, dim), LINE);
}

extern const int32_t kvb_scale_bytes[SCALES];

/* ---- variants.c: what a variant of decode makes of a cache's rows ---------------------------------------------- */

/* Ways to read a row, as indices of a tier's `rows`: each dtype as it is, then those that are of one variant alone. */
enum { READ_ROUND16 = DTYPES, READ_DOT8, READ_DOT16, READS };

/* The way that a variant reads rows of a dtype for which it has a kernel: kvb_reads() is not negative. */
int32_t kvb_way_of(int32_t variant, int32_t dtype);
/* Whether a tier has the way, and turns rows into float32 where a group has more than HEADS heads. */
bool kvb_has_way(int32_t isa, int32_t way);
bool kvb_widens(int32_t isa, int32_t way);

/* ---- layouts.c: where a token's row lies ----------------------------------------------------------------------- */

typedef struct kvb_layout {
    void (*plan)(kvb_cache *cache); /* strides and plane sizes from a checked shape */
    bool paged;
    bool whole;      /* a head's rows are one stretch, which a cache that grows moves as it is */
    bool transposed; /* K in blocks of LANES tokens, whose cells lie side by side: transposed.c */
} kvb_layout;
extern const kvb_layout kvb_layouts[LAYOUTS];

/* Whether the layout has caches of the dtype. */
bool kvb_layout_has(int32_t layout, int32_t dtype);

/* Heads of a token lie side by side, so a walk takes all heads of a block of tokens before the next block. */
bool kvb_heads_inner(const kvb_cache *cache);

/* Where `count` tokens from `first` on lie, in bytes from the start of a plane. K that is transposed lies in blocks:
 * there it is where the row would lie, if the block were one of rows. */
void kvb_offsets(const kvb_cache *cache, int64_t seq, int64_t head, int64_t first, int64_t count, int64_t *rows,
                 int64_t *scales);

/* ---- transposed.c: blocks of LANES tokens as matrices [cells of a row][tokens] ----------------------------------- */

/* Bytes of a cell, the elements of a row that stay side by side. 0: no transposed layout has the dtype. */
int32_t kvb_cell_bytes(int32_t dtype);

/* The lane of a token in its block of K; 0 where K is not transposed. */
int64_t kvb_lane(const kvb_cache *cache, int64_t token);

/* Whole lines from a block's start on, that hold all cells with elements. 0 where K is not transposed. */
int64_t kvb_block_bytes(const kvb_cache *cache);

/* Encoded rows of one head, up to LANES of them side by side, into a block: the first one to `lane`. `to` is where that
 * row would lie if the block were one of rows. */
void kvb_lay_rows(int32_t dtype, const uint8_t *rows, int64_t row_bytes, int64_t count, int64_t lane, bool nt,
                  uint8_t *to);
/* The bytes of a row with elements, out of its block. */
void kvb_gather(int32_t dtype, const uint8_t *block, int64_t lane, int64_t dim, uint8_t *row);

/* Blocks that some tokens' slots lie in, each counted once. */
int64_t kvb_blocks_of(const kvb_cache *cache, int64_t first, int64_t end);

/* ---- a tile: up to TILE tokens of one sequence and one KV head ------------------------------------------------- */

typedef struct kvb_tile {
    int32_t count;                  /* one past the last live token; the pointers behind repeat its own, up to TILE */
    int32_t lead;                   /* tokens in front that are none of the tile's: below LANES, and most often 0 */
    int64_t k_block;                /* 0, or K is transposed: every LANES-th k is a block, and these are its bytes */
    const uint8_t *k[TILE];         /* row of each token */
    const uint8_t *v[TILE];
    int64_t side;                   /* rows to prefetch line by line in turn */
    const uint8_t *const *k_ahead;  /* [TILE] rows to prefetch while K of token t is consumed, or null for none */
    const uint8_t *const *v_ahead;  /* the same while V is: one prefetch per line consumed, never a burst */
    float k_scale[TILE];            /* scaled formats only */
    float v_scale[TILE];
} kvb_tile;

/* ---- a tier: one instruction set's version of everything that touches rows --------------------------------------- */

/* The q of a group as whole numbers, as a way's `take` leaves them. */
typedef struct kvb_taken {
    float step[HEADS];           /* what one is worth; NaN where q is not finite */
    int32_t lanes[HEADS][LANES]; /* what a score's sums begin with */
    _Alignas(LINE) int8_t codes[];
} kvb_taken;

static inline int64_t taken_bytes(int64_t dim)
{
    return (int64_t)sizeof(kvb_taken) + 2 * HEADS * round_up(dim, LINE);
}

/* Softmax state of up to HEADS query heads that share a KV head. */
typedef struct kvb_group {
    int32_t heads;
    int32_t slots;     /* heads rounded up to a class: 1, 2, 4 or 8 */
    int32_t dim;
    int64_t dim_pad;   /* dim rounded up to LANES */
    const float *q;    /* [dim_pad / LANES][slots][LANES], times scale * log2(e); zero behind dim and behind heads */
    float *max;        /* [HEADS], of the scores so far, in units of log2 */
    float *sum;        /* [HEADS][LANES], lane-wise */
    float *rescale;    /* [HEADS], what the last softmax asks the accumulators to be multiplied by */
    float *acc;        /* [slots][dim_pad] */
    kvb_taken *taken;  /* null for ways without `take` */
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

/* The functions of a tier that depend on the dtype. The index of `qk` and `pv` is the group class: 1, 2, 4, 8 heads. */
typedef struct kvb_rows {
    /* at the beginning of a unit: q -> taken; null where q is multiplied as it is */
    void (*take)(const kvb_group *group);
    /* scores[head * TILE + t] = q[head] . k[t], for t < count rounded up to a multiple of LANES */
    void (*qk[4])(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* the same of a tile whose K is transposed; null where no layout transposes the dtype */
    void (*qk_t[4])(const kvb_tile *tile, const kvb_group *group, float *scores);
    /* acc[head] = acc[head] * rescale[head] + sum over lead <= t < count of p[head * TILE + t] * v[t] */
    void (*pv[4])(const kvb_tile *tile, const kvb_group *group, const float *p);
    /* one query head, token by token, online softmax: what most public CPU kernels do */
    void (*perhead)(const kvb_tile *tile, const kvb_group *group);
    void (*encode)(const kvb_encode *rows);
    /* one row as float32: to[0 .. dim) */
    void (*decode)(const uint8_t *row, float scale, int64_t dim, float *to);
} kvb_rows;

typedef struct kvb_tier {
    kvb_rows rows[READS];
    /* scores times k_scale (where scaled), -inf below `lead` and from `count` up to a multiple of LANES; raises max,
     * sets rescale */
    void (*peak)(const kvb_tile *tile, const kvb_group *group, float *scores, bool scaled);
    /* scores -> p = exp2(score - max) in place, times v_scale where scaled; sum = sum * rescale + sum of p */
    void (*weigh)(const kvb_tile *tile, const kvb_group *group, float *scores, bool scaled);
    /* reads `bytes` of every K row, or its blocks, and of every V row of a tile, prefetching as the tile says */
    void (*twin)(const kvb_tile *tile, int64_t bytes);
    /* probes on one thread's share; bytes are a multiple of LINE; nothing orders the non-temporal stores of _nt */
    void (*read)(const void *from, int64_t bytes, int64_t distance);
    void (*write)(void *to, int64_t bytes);
    void (*write_nt)(void *to, int64_t bytes);
    void (*copy)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*copy_nt)(void *to, const void *from, int64_t bytes, int64_t distance);
    void (*triad)(void *to, const void *from, const void *from2, int64_t bytes);
    double (*flops)(int64_t rounds); /* returns the FLOPs done */
    int32_t qk_heads;     /* query heads that share one load of a K row; more heads load it again, from L1 */
    int32_t tile[DTYPES]; /* tokens per tile */
} kvb_tier;

extern const kvb_tier kvb_tier_scalar, kvb_tier_avx2, kvb_tier_avx512, kvb_tier_neon, kvb_tier_sve256, kvb_tier_sve512;
/* registry.c: null where this build has no such tier */
const kvb_tier *kvb_tier_of(int32_t isa);
/* cpu.c: whether this CPU has what a tier's way needs beyond what the tier itself does */
bool kvb_way_runs(int32_t isa, int32_t way);

/* ---- tensor.c: scales of a whole tensor -------------------------------------------------------------------------- */

bool kvb_has_tensor(int32_t dtype);
float kvb_tensor(float scale); /* what one of a cache is: 0 stands for 1 */
int32_t kvb_check_tensor(const kvb_cache *cache);
/* Rows to store, of a plane whose scale is `tensor`. */
void kvb_encode_rows(int32_t isa, int32_t dtype, float tensor, const kvb_encode *rows);

/* ---- units: what one thread does at a time (plan.c, walk.c) ------------------------------------------------------ */

/* A range of tokens of one sequence: one KV head (one query head for perhead), or all heads where they lie inside. */
typedef struct kvb_unit {
    int64_t seq;
    int64_t head;    /* KV head of the first query head */
    int64_t heads;   /* KV heads walked: 1, or all of them */
    int64_t query;   /* first query head */
    int64_t queries; /* query heads served per KV head */
    int64_t first;   /* tokens first .. first + count */
    int64_t count;
    int64_t partial; /* index of the unit's first partial state, or -1: the unit is its whole row */
} kvb_unit;

/* Rows are what an output state is made from: (sequence, KV head), (sequence, query head) or a whole sequence. */
typedef struct kvb_plan {
    int64_t *lengths;       /* [batch], those that the plan was made for */
    kvb_unit *units;        /* by row, then by token */
    int64_t *row_units;     /* [rows + 1] */
    int64_t *thread_units;  /* [threads + 1] */
    int64_t rows;
    int64_t states;         /* query heads of a row */
    int64_t partials;       /* partial states in all: `states` for each unit of a row that was cut */
} kvb_plan;

int32_t kvb_plan_make(const kvb_decode *args, int32_t threads, kvb_plan *plan);
/* Whether the plan still holds: table and lengths belong to the caller and may have changed. */
int32_t kvb_plan_ready(const kvb_decode *args, int32_t threads, const kvb_plan *plan);
void kvb_plan_free(kvb_plan *plan);

/* First token that a sequence attends to, and one past the last. */
void kvb_attended(const kvb_decode *args, int64_t seq, int64_t *first, int64_t *end);

/* ---- tasks (run.c drives them) ---------------------------------------------------------------------------------- */

struct kvb_task {
    /* null, or: before a run of this many passes of the task, a code with its message where they cannot all be done */
    int32_t (*ready)(const kvb_task *task, int64_t passes);
    /* `work` on every thread; then, after a barrier, `finish` on every thread, where there is one */
    void (*work)(kvb_task *task, int32_t thread, void *scratch);
    void (*finish)(kvb_task *task, int32_t thread, void *scratch);
    void (*dispose)(kvb_task *task); /* releases what the task owns, not the task */
    int32_t threads;
    int32_t stages;         /* 1: the first 64 bytes of the scratch are double ticks[3], zeroed before each pass */
    int64_t scratch_bytes;  /* per thread; 64-byte aligned, its content is whatever the last pass left */
    kvb_traffic traffic;
};
/* A zeroed task of `bytes` (a struct that begins with kvb_task), or null with the message set. */
void *kvb_task_new(size_t bytes, int32_t threads);

/* check.c: every argument rule stands here, each with a message that names the argument */
int32_t kvb_check_shape(const kvb_cache *cache); /* before planning */
int32_t kvb_check_cache(const kvb_cache *cache); /* planned, bound, with lengths and table */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads);
int32_t kvb_check_store(const kvb_store *args, int32_t threads);
int32_t kvb_check_probe(const kvb_probe *args, int32_t threads);
int32_t kvb_check_isa(int32_t isa);
int32_t kvb_check_threads(int32_t threads);

/* traffic.c: a code where memory to count with is lacking */
int32_t kvb_traffic_decode(const kvb_decode *args, kvb_traffic *traffic);
int32_t kvb_traffic_twin(const kvb_decode *args, kvb_traffic *traffic);
int32_t kvb_traffic_store(const kvb_store *args, kvb_traffic *traffic);
void kvb_traffic_probe(const kvb_probe *args, kvb_traffic *traffic);

#pragma GCC visibility pop

#endif
