/* What the parts of the library share: words, formats, tiles, the table of a tier, tasks. Only static inline code. */
#ifndef KVB_CORE_H
#define KVB_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtypes.h"
#include "base/presets.h"
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

enum { LINE = 64, TILE = 1024, HEADS = 8, LANES = 16, DIM_MAX = 1024 };
enum { TILE_BYTES = 131072 }; /* of a head's rows in a tile that are not read whole, at most: twice LANES of the longest */

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* Every turn of a loop is written out, `most` at most: else arrays would not be registers. Clang knows gcc's words, and does
 * not heed them. */
#define KVB_PRAGMA(words) _Pragma(#words)
#ifdef __clang__
#define UNROLL_UP_TO(most) KVB_PRAGMA(clang loop unroll(full))
#else
#define UNROLL_UP_TO(most) KVB_PRAGMA(GCC unroll most)
#endif

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

/* Slots from a token's on without a wrap or an edge of a block, in bytes from the start of a plane: the rows lie token
 * strides apart. K that is transposed lies in blocks: there it is where the row would lie, if the block were one of
 * rows. -1: the table leaves the block out. */
typedef struct kvb_stretch {
    int64_t count, row, scale;
} kvb_stretch;
kvb_stretch kvb_stretch_of(const kvb_cache *cache, int64_t seq, int64_t head, int64_t token);

/* The same for each of `count` tokens from `first` on; scales may be null. */
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

#include "tier/tier.h"

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

/* KV heads of a unit. */
static inline int64_t kvb_unit_heads(const kvb_decode *a)
{
    return a->variant != VARIANT_PERHEAD && kvb_heads_inner(a->cache) ? a->cache->kv_heads : 1;
}

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
/* Whether the plan still holds: table and lengths belong to the caller and may have changed, and a run may add `grown`. */
int32_t kvb_plan_ready(const kvb_decode *args, int32_t threads, int64_t grown, const kvb_plan *plan);
void kvb_plan_free(kvb_plan *plan);

/* First token that a sequence attends to, and one past the last. */
void kvb_attended(const kvb_decode *args, int64_t seq, int64_t *first, int64_t *end);

/* ---- tasks (run.c drives them) ---------------------------------------------------------------------------------- */

struct kvb_task {
    /* null, or: before a run, a code with its message where the task's passes cannot all be done. Before the last of
     * them the run will have added `grown` tokens to each sequence of `cache` */
    int32_t (*ready)(const kvb_task *task, int64_t grown);
    /* `work` on every thread; then, after a barrier, `finish` on every thread, where there is one */
    void (*work)(kvb_task *task, int32_t thread, void *scratch);
    void (*finish)(kvb_task *task, int32_t thread, void *scratch);
    void (*dispose)(kvb_task *task); /* releases what the task owns, not the task */
    const kvb_cache *cache; /* null where there is none */
    kvb_cache shape;        /* as the cache was when the task was planned */
    int64_t advance;        /* tokens that a pass adds to each of its sequences */
    int32_t threads;
    int32_t stages;         /* 1: the first 64 bytes of the scratch are double ticks[3], zeroed before each pass */
    int64_t scratch_bytes;  /* per thread; 64-byte aligned, its content is whatever the last pass left */
    const char *fault;      /* null, or what a plug-in's kernel did wrong in some pass; set on any thread */
    kvb_traffic traffic;
};
/* A zeroed task of `bytes` (a struct that begins with kvb_task), or null with the message set. `cache` may be null. */
void *kvb_task_new(size_t bytes, const kvb_cache *cache, int32_t threads);

/* check.c: every argument rule stands here, each with a message that names the argument */
int32_t kvb_check_shape(const kvb_cache *cache); /* before planning */
int32_t kvb_check_cache(const kvb_cache *cache); /* planned, bound, with lengths and table */
int32_t kvb_check_same(const kvb_cache *cache, const kvb_cache *before); /* the same rows, of any capacity */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads);
int32_t kvb_check_store(const kvb_store *args, int32_t threads);
int32_t kvb_check_probe(const kvb_probe *args, int32_t threads);
int32_t kvb_check_isa(int32_t isa);
int32_t kvb_check_threads(int32_t threads);

/* traffic.c: a code where memory to count with is lacking */
int32_t kvb_traffic_decode(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);
int32_t kvb_traffic_twin(const kvb_decode *args, kvb_traffic *traffic);
int32_t kvb_traffic_store(const kvb_store *args, kvb_traffic *traffic);
void kvb_traffic_probe(const kvb_probe *args, kvb_traffic *traffic);

/* loads.c: how often a decode loads a row of K or of V, */
double kvb_loads(const kvb_decode *args, bool k);
/* and all scales of `rows` rows of each */
double kvb_scale_loads(const kvb_decode *args, const kvb_plan *plan, double rows);

#pragma GCC visibility pop

#endif
