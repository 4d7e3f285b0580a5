/* The binary interface of the kvbench kernel library.
 *
 * Plain declarations only: C includes this file through kvbench.h, and Python (cffi) reads it
 * verbatim, so no preprocessor line may stand here. Sizes are in bytes and counts are int64_t
 * unless a name says otherwise. A word (layout, dtype, isa...) crosses the interface as its index
 * in the list that kvb_word() spells out.
 */

enum kvb_code {
    KVB_OK = 0,
    KVB_BAD_ARGUMENT = 1, /* a value is wrong: kvb_message() names the argument */
    KVB_UNSUPPORTED = 2,  /* this CPU, or this build, cannot do it */
    KVB_NO_MEMORY = 3,
    KVB_SYSTEM = 4, /* the operating system refused */
    KVB_FOREIGN = 5 /* a plug-in's kernel did what kvb_work forbids */
};

/* The message that belongs to the last non-zero code returned on this thread. */
const char *kvb_message(void);

/* ---- words ----------------------------------------------------------------------------------- */

/* The index-th word of a list ("op", "variant", "layout", "inner", "dtype", "scale", "isa",
 * "pages", "schedule"), or null past its end. */
const char *kvb_word(const char *list, int32_t index);

typedef struct kvb_work kvb_work; /* see "a kernel of your own" */

/* What a decode may ask for beyond one query a sequence, and K and V of one dtype and width, each
 * in a plane of its own. The comments of kvb_cache and kvb_decode say what each is. */
enum {
    KVB_TAKES_QUERIES = 1, /* q_len, ends */
    KVB_TAKES_PAIRS = 2,   /* K and V of two dtypes or widths */
    KVB_TAKES_V_IN_K = 4,
    KVB_TAKES_SINK = 8, /* no kernel need say it, nor KEPT: these are the library's own work */
    KVB_TAKES_SOFTCAP = 16,
    KVB_TAKES_SLOPE = 32,
    KVB_TAKES_KEPT = 64,
    KVB_TAKES_MASK = 128, /* block and tree */
    KVB_TAKES_CHANNEL = 256,
    KVB_TAKES_PICKED = 512
};

/* One kernel of the registry: op.variant.layout.dtype.isa. A word that does not apply is "-". A
 * decode is listed for K and V of one dtype; a pair of dtypes runs where both are listed. */
typedef struct kvb_kernel {
    const char *op;
    const char *variant;
    const char *layout;
    const char *dtype;
    const char *isa;
    const char *about;
    int32_t runnable; /* this CPU has what the kernel needs */
    int32_t takes;    /* of a plug-in's: sum of KVB_TAKES_*; 0: none of them */
    /* a plug-in's kernel; null for the library's own, which are tasks */
    void (*run)(const kvb_work *work);
} kvb_kernel;

/* The index-th kernel, or null past the end. */
const kvb_kernel *kvb_kernels(int32_t index);

/* The planes of a cache, where a function asks for one. */
enum { KVB_K = 0, KVB_V = 1 };

/* The dtype as whose values a variant of decode takes those of a plane: its own, or another one
 * that they are rounded to while they are read. -1 where the variant has no kernel for the layout
 * and dtype. */
int32_t kvb_reads(int32_t variant, int32_t layout, int32_t dtype, int32_t plane);
/* The largest whole number that a variant of decode rounds to, 0 where it rounds none. `which` 0,
 * by the dtype of K: for the elements of a query, times the scale of the scores, of which the
 * largest becomes it. 1, by the dtype of V: for a tile's weights, each times the scale of its row,
 * likewise. `which` 2, of either: so many elements have a largest of their own; 0 for all
 * together. `which` 3: the significant bits that each element of a query, by the dtype of K, or
 * each weight, by that of V, is rounded to by itself; 0 where none is. */
int32_t kvb_levels(int32_t variant, int32_t dtype, int32_t which);

/* Bytes of a row that stay side by side in a layout that transposes the plane: a cell, see
 * kvb_cache; 1 where the plane lies in quads. 0 where rows lie whole, or where the layout has no
 * such planes of the dtype. */
int32_t kvb_cell(int32_t layout, int32_t dtype, int32_t plane);

/* 1 when this CPU runs the tier, 0 when it cannot (or this build lacks it). */
int32_t kvb_isa_runs(int32_t isa);
/* The best tier that this CPU runs. */
int32_t kvb_isa_best(void);
/* The schedule that is taken where nobody asks for another one: the same on every CPU. */
int32_t kvb_schedule_default(void);

/* One row per struct field of this file, so that a reader can refuse a library built from another
 * one. */
typedef struct kvb_field {
    /* "kvb_cache.capacity"; a struct itself stands as "kvb_cache" with offset 0 */
    const char *name;
    int64_t offset;
    int64_t size;
} kvb_field;
const kvb_field *kvb_fields(int32_t index);
/* Compiler and flags that made the library, and its version. */
const char *kvb_build(void);

/* ---- the cache ------------------------------------------------------------------------------- */

/* K of a cache, or V: what its rows are, and where. */
typedef struct kvb_plane {
    int32_t dtype;
    int32_t scale; /* dtype of the scales, where the dtype has any */
    float tensor;  /* floats of 8 bits: what every stored element stands for is its code times this,
                   * 0 = 1; stores divide by it, in float32 */
    /* set by kvb_cache_plan: bytes of a cell, where the plane lies transposed, else 0 */
    int32_t cell;
    /* K of i8: [kv_heads][elements of a row], what an element stands for is its code times this;
     * stores divide by it, in float32, and decode multiplies q by it. Then rows have no scales.
     * Null: none. The caller's, and the same as long as there are rows */
    const float *channel;
    /* set by kvb_cache_plan */
    int64_t dim; /* elements of a row */
    int64_t row_bytes;
    int64_t token_stride;
    int64_t head_stride;
    int64_t seq_stride;
    int64_t scale_token_stride;
    int64_t scale_head_stride;
    int64_t scale_seq_stride;
    int64_t bytes;       /* of all rows */
    int64_t scale_bytes; /* of all scales */
    /* set by kvb_cache_bind */
    uint8_t *rows;
    uint8_t *scales;
} kvb_plane;

/* K and V of one layer. The row of token t, KV head h, sequence b lies at, with the strides of
 * its plane,
 *   head, position:  b * seq_stride + h * head_stride + slot * token_stride
 *   paged:           table[b * table_stride + slot / block_tokens] * seq_stride
 *                      + h * head_stride + (slot % block_tokens) * token_stride
 *   blockt:          as head for V. K lies in blocks of 16 slots, each at b * seq_stride
 *                      + h * head_stride + slot / 16 * 16 * token_stride:
 *                    a matrix [cells of a row][16] of four bytes each (f32: one element, bf16: a
 *                    pair, i8: a quad), or of two (f16: one). Cell i of a slot lies at
 *                    (i * 16 + slot % 16) * bytes of a cell. There is room for whole blocks
 *   block16:         K and V in such blocks, of rows whose codes are bytes (i8, e4m3, e5m2) or
 *                    packed (q8_0, q4_0). Of packed rows the scales come first, f16: that of pack p
 *                    at (p * 16 + slot % 16) * 2; then the codes of all packs as if they were one
 *                    row. Byte j of them lies behind the scales, of K in cells of four bytes at
 *                    (j / 4 * 16 + slot % 16) * 4 + j % 4, of V in quads of four slots at
 *                    j / 16 * 256 + slot % 16 / 4 * 64 + j % 16 * 4 + slot % 4
 * with slot = t, or t % capacity for a ring. Scales (i8) use the scale strides in the same way.
 * K and V may be of two dtypes and of two widths. This library's kernels take each in a plane of
 * its own: anything else is refused. */
typedef struct kvb_cache {
    int32_t layout;
    int32_t inner; /* paged only: order of a block, by head or by token */
    int32_t ring;  /* 1: the slots are a ring, and a sequence may be longer than the capacity */
    /* 1: rows of V lie in those of K, v_offset bytes behind where these begin; then V has no plane
     */
    int32_t v_in_k;
    int64_t v_offset;
    int64_t batch;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t v_dim;    /* elements of a row of V, and of out; 0 = head_dim */
    int64_t capacity; /* tokens per sequence */
    int64_t block_tokens;
    int64_t blocks; /* paged: blocks in the pool */
    int64_t pad;    /* bytes added to each head's rows, so that heads do not share cache sets */
    kvb_plane k;
    kvb_plane v;
    /* set by kvb_cache_plan */
    int64_t bytes;        /* of rows of K, of V, then scales of K, of V */
    int64_t table_stride; /* table entries per sequence */
    /* owned by the caller */
    /* [batch][table_stride], paged only; a negative entry is skipped by stores */
    const int32_t *table;
    int64_t *lengths; /* [batch], tokens stored so far */
} kvb_cache;

/* Check the shape and fill in strides and sizes. */
int32_t kvb_cache_plan(kvb_cache *cache);
/* Lay the planes of a planned cache over memory (64-byte aligned, cache->bytes long). */
int32_t kvb_cache_bind(kvb_cache *cache, void *memory);
/* Default padding of a head's plane: an odd number of lines. */
int64_t kvb_cache_pad(void);

/* ---- tasks: one op on given arguments, checked and planned ----------------------------------- */

typedef struct kvb_task kvb_task;
void kvb_task_free(kvb_task *task);

/* Which of the newest tokens of its sequence, as many as that has queries, a query attends to,
 * besides all before them. */
enum {
    KVB_MASK_CHAIN = 0, /* those up to its own, as `ends` says */
    KVB_MASK_BLOCK = 1, /* all */
    KVB_MASK_TREE = 2   /* those of its word in `tree` */
};

/* Decode attention for the newest tokens of each sequence, one or several. A score is
 * scale * q . k, then capped, then changed by its slope, then masked; a query that attends to no
 * token gets zeros. What is `picked` has its place and is refused. */
typedef struct kvb_decode {
    const kvb_cache *cache;
    const float *q; /* [batch][q_len][q_heads][head_dim] */
    float *out;     /* [batch][q_len][q_heads][v_dim] */
    int64_t q_heads;
    int64_t q_len; /* queries of each sequence, 32 at most; 0 = 1 */
    /* [batch][q_len]: how many of its sequence's tokens each attends to. Where the mask is no
     * chain, these are all. 0: the sequence has no such query, and its row of out is zeros. The
     * queries of a sequence are those up to the last one whose end is not 0. Null: each has q_len;
     * in a chain the last attends to all tokens, and the one before it to one less */
    const int64_t *ends;
    /* [q_heads]: a score that takes its share of the weights and has no value: neither scaled nor
     * capped, nor with a slope. Null: none */
    const float *sink;
    int64_t window; /* attend to the last `window` of these tokens; 0 = all */
    float scale;    /* 0 = 1 / sqrt(head_dim) */
    int32_t variant;
    int32_t isa;
    int32_t schedule; /* in which order rows are read, and what is prefetched meanwhile: off,
                       * nothing; cross, V while K is consumed, and K while V is; weave, K and V of
                       * what comes next, line by line from several pages of each; stream, of the
                       * same plane what comes next, in address order, into L2 */
    /* 0, or the core roof: in place of its own tokens every unit walks so many of the first
     * sequence's first head, again and again, in blocks that are cut as its own */
    int64_t wrap;
    int32_t deterministic; /* split by shape only, never by the number of threads */
    int32_t stages;        /* 1: time QK, softmax and PV apart (costs a few clock reads per tile) */
    void (*run)(
        const kvb_work *work); /* null, or: a plug-in's kernel in place of the variant, which must
                                * be flash (its units are cut alike). Schedule and stages do not
                                * concern it; with `wrap` it is called anew for every window */
    float softcap;             /* 0, or: a score becomes softcap * tanh(score / softcap) */
    int32_t mask;              /* KVB_MASK_* */
    /* [batch][q_len]: bit i is the i-th of the newest tokens, as many as the sequence has queries
     */
    const uint32_t *tree;
    /* [q_heads], ALiBi: slope * (token - the query's own token) is added to a score; null: none.
     * Its own is the last that it attends to; where the mask is no chain, the i-th query's is the
     * i-th of the newest tokens, as many as the sequence has queries */
    const float *slope;
    /* with a window: so many of the first tokens are attended to as well. A ring must still have
     * them all */
    int64_t kept;
    /* [batch][picks]: the tokens that are attended to, in ascending order; null: all */
    const int64_t *picked;
    int64_t picks;
} kvb_decode;

int32_t kvb_task_decode(const kvb_decode *args, int32_t threads, kvb_task **task);
/* A pure read of the rows that the decode task would read: same threads, same order. */
int32_t kvb_task_twin(const kvb_decode *args, int32_t threads, kvb_task **task);
/* Pseudo-random rows of unit variance, each written by a thread that the decode task will read it
 * with. */
int32_t kvb_task_fill(const kvb_decode *args, int32_t threads, uint64_t seed, kvb_task **task);

/* ---- a kernel of your own -------------------------------------------------------------------- */

/* A plug-in is a shared object that exports
 *     const int32_t kvb_plugin = KVB_PLUGIN;
 *     const kvb_kernel *kvb_kernels(int32_t index);
 * The kernels it lists have the op "decode", a variant that only it has ([a-z0-9_]+), our words
 * of layout, dtype and isa (the tier whose instructions it needs), and `run`. It is linked to no
 * library of ours: see example/plugin.c. */
/* version: another one when kvb_kernel, kvb_plane, kvb_cache or kvb_work change */
enum { KVB_PLUGIN = 4 };

/* What `run` is called for: tokens first .. first + count of one sequence, for the query heads of
 * some KV heads. Our threads call it for different units at once, in no order; it keeps nothing
 * between calls and may use the stack. Rows lie as kvb_cache says, each at a multiple of 64 bytes
 * but for packed ones and K of blockt; a row of i8 is multiplied by its scale, or its elements by
 * their plane's `channel`, and all floats of 8 bits by its `tensor` where that is not 0. What lies
 * behind a sequence's last token, or a row's last element, is not to be trusted. Writes nothing but
 * max, sum and acc. What a kernel does not say that it `takes` is 0 or null. */
struct kvb_work {
    /* of the kernel's layout and dtype; the scale of its planes is 0 for f32, 1 for f16 */
    const kvb_cache *cache;
    int64_t seq;
    int64_t head; /* the first KV head, */
    /* and how many: 1, or all of them where the heads of a token lie side by side */
    int64_t heads;
    int64_t group; /* query heads of each KV head */
    int64_t q_len; /* queries of the sequence, */
    /* [q_len], and how many of the sequence's tokens each attends to; null: all of the unit's */
    const int64_t *ends;
    int64_t first;    /* token */
    int64_t count;    /* tokens, at least one */
    const float *q;   /* [q_len] of [heads][group][head_dim], unscaled, */
    int64_t q_stride; /* and floats from one to the next */
    float scale;      /* score = scale * q . k */
    float *max;       /* [q_len][heads][group], out: the largest score, */
    float *sum;       /* [q_len][heads][group]: the sum of exp(score - max), */
    /* [q_len][heads][group][v_dim]: and of exp(score - max) * v. They come with any content */
    float *acc;
    /* as in kvb_decode, of this unit. Where `ends` is null a query's own token, from which slopes
     * count, is its sequence's last one. Sinks are the library's, as units of kept tokens are */
    float softcap;
    int32_t mask;
    const uint32_t *tree;  /* [q_len] */
    const float *slope;    /* [heads][group] */
    const int64_t *picked; /* [picks], of the sequence's tokens */
    int64_t picks;
};

/* ---- stores, moves, probes ------------------------------------------------------------------- */

/* Stores into a cache. */
typedef struct kvb_store {
    kvb_cache *cache;
    const float *k;
    const float *v;
    int64_t tokens; /* per sequence: 1 for append */
    /* source order: 0 [batch][tokens][kv_heads][head_dim], 1 [batch][kv_heads][tokens][head_dim] */
    int32_t head_major;
    int32_t nt; /* non-temporal stores */
    int32_t isa;
    /* 1: lengths grow by `tokens` after the pass; 0: the pass can be repeated in place */
    int32_t advance;
} kvb_store;

/* One token for every sequence, at its length. */
int32_t kvb_task_append(const kvb_store *args, int32_t threads, kvb_task **task);
/* `tokens` prompt tokens for every sequence, from its length on. */
int32_t kvb_task_bulk(const kvb_store *args, int32_t threads, kvb_task **task);
/* Zero every byte of the planes. */
int32_t kvb_task_clear(const kvb_cache *cache, int32_t isa, int32_t threads, kvb_task **task);
/* The decoded rows as float32 [batch][tokens][kv_heads][head_dim], first `tokens` of each
 * sequence's live rows. */
int32_t kvb_task_unpack(const kvb_cache *cache, int64_t first, int64_t tokens, float *k, float *v,
                        int32_t isa, int32_t threads, kvb_task **task);
/* Forget all tokens: lengths become zero, bytes stay. */
int32_t kvb_reset(kvb_cache *cache);
/* Grow a cache whose heads are whole stretches (head, blockt, block16) in place to a planned, bound
 * cache of larger capacity over the same memory, whose lengths become those of `from`. On one
 * thread. The first pass moves the rows; more of them move as many bytes between the same places.
 */
int32_t kvb_task_repack(const kvb_cache *from, const kvb_cache *to, int32_t isa, int32_t threads,
                        kvb_task **task);
/* So many matrices, each float32 [rows][heads][dim] -> [heads][rows][dim], and back: to_head_major
 * chooses. */
int32_t kvb_task_transpose(const float *from, float *to, int64_t matrices, int64_t rows,
                           int64_t heads, int64_t dim, int32_t to_head_major, int32_t isa,
                           int32_t threads, kvb_task **task);
/* Copy a row of `width` floats to row `position` of each of so many [rows][width] matrices. A pass
 * moves `position`, which the caller owns, on to the next row, and from the last to the first. */
int32_t kvb_task_logits(const float *from, float *to, int64_t matrices, int64_t rows, int64_t width,
                        int64_t *position, int32_t isa, int32_t threads, kvb_task **task);

/* Probes: what the machine itself can do. */
typedef struct kvb_probe {
    int32_t op; /* read write write_nt copy copy_nt triad flops dot8 dot16 latency clock */
    int32_t isa;
    void *a;          /* read: source; write, copy, triad: destination; latency: the chain */
    const void *b;    /* copy, triad: source */
    const void *c;    /* triad: second source */
    int64_t bytes;    /* of each buffer; a multiple of 64 */
    int64_t distance; /* read, copy: prefetch so many bytes ahead; 0 = leave it to the hardware.
                       * Then read takes the eighths of a share in turn, for one run of lines leaves
                       * a core idle that follows eight */
    int64_t steps; /* times over the buffers, 0 = once; latency: loads, each pass on from where the
                    * last one stopped; flops, dot8, dot16: rounds; clock: additions */
    /* read: prefetch as it does, lines in the order of addresses; 0 = off, then `distance` says */
    int32_t schedule;
    /* read without steps: bytes of a pass, a multiple of 64; 0 = all of the buffer. A pass goes on
     * where the last one stopped, and behind the buffer's end at its begin */
    int64_t piece;
} kvb_probe;

int32_t kvb_task_probe(const kvb_probe *args, int32_t threads, kvb_task **task);
/* Link the lines of a buffer into one random cycle, for latency. */
int32_t kvb_chain(void *buffer, int64_t bytes, uint64_t seed);

/* What one pass moves and computes. */
typedef struct kvb_traffic {
    double flops;
    /* K and V once per KV head, scales of rows and channels, q, out, page table; stores: payload
     * and source. Not what is a few bytes a query head or query: sinks, slopes, ends, a tree */
    double compulsory;
    /* bytes that load and store instructions ask for; a plug-in's are unknown: the compulsory ones
     */
    double issued;
    double line; /* 64-byte lines touched, times 64 */
    double kv;   /* rows of K and V alone */
    double scales;
    double table;
    double ai; /* flops / compulsory */
} kvb_traffic;

int32_t kvb_task_traffic(const kvb_task *task, kvb_traffic *traffic);
/* What all passes so far of a twin, or of the probe `read`, have loaded, as one number: the sum of
 * its 16-bit words modulo 2^16, each as often as it was read. A scale counts as the float32 that it
 * stands for. Other tasks have none: KVB_UNSUPPORTED. */
int32_t kvb_task_sum(const kvb_task *task, uint32_t *sum);

/* Tasks done one after the other, as one pass. `kinds`[i], 0 to 2, says which of the three shares
 * of kvb_run_times the time of tasks[i] counts to. The tasks stay the caller's and live at least as
 * long as the series; the same one may stand at several places. None of them adds tokens, counts
 * stages, or is a series. A series runs neither as `between` nor beside tasks that count stages. */
int32_t kvb_task_series(kvb_task *const *tasks, const int32_t *kinds, int32_t count,
                        int32_t threads, kvb_task **task);

/* ---- threads and time ------------------------------------------------------------------------ */

/* Persistent threads, pinned to cpus[i] (null: not pinned), asleep unless kvb_run needs them. */
typedef struct kvb_team kvb_team;
int32_t kvb_team_open(const int32_t *cpus, int32_t threads, kvb_team **team);
void kvb_team_close(kvb_team *team);

typedef struct kvb_run_times {
    double seconds;         /* from the common start to the end of the last pass */
    double *pass_seconds;   /* [passes] or null */
    double *thread_seconds; /* [threads] or null: time in the op's own work, without waiting */
    /* QK, softmax, PV: shares of the clock ticks, where the task counts stages. Of a series: shares
     * of its time, by kind */
    double stage_share[3];
    int64_t switches; /* involuntary context switches of the team during the run */
    int64_t faults;   /* page faults of the team during the run */
} kvb_run_times;

/* Run tasks[pass % count] for `passes` passes. With `between`, that task runs untimed before every
 * pass and `seconds` is the sum of the passes alone. Every task must be planned for the team's
 * number of threads. A decode, twin or fill attends to the lengths that it was planned for: a run
 * that would add to them before its pass is refused. */
int32_t kvb_run(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                kvb_task *between, kvb_run_times *times);

/* What a second team does while a run lasts: passes over its tasks, round robin. */
typedef struct kvb_load {
    kvb_team *team;         /* not that of the run, and on CPUs of its own */
    kvb_task *const *tasks; /* [count], planned for that team; none of them is one of the run */
    int32_t count;
    int64_t ahead; /* passes before the run begins: 1 to 2^30 - 1 */
    /* 0 to 1000: after each unit of work a thread spins `pause` times as long as the unit took. A
     * unit of a decode or its twin: the tokens of a sequence for one KV head (or all, or one query
     * row), or a thread's part of them. Of a probe that moves bytes: at most 128 KiB of each
     * buffer. Of any other task: all that a thread does in a pass */
    double pause;
    int64_t passes; /* out: passes after the first `ahead`; the last of them ends after the run */
    double seconds; /* out: how long those took, waits included */
} kvb_load;

/* As kvb_run, while a load works beside it. All threads of the load do `ahead` passes before the
 * run begins; they stop at the end of the pass in which the run has ended. All arguments are
 * checked before anything runs. A message about the load begins with "load: ". A task of the load
 * that adds tokens must add them to a ring. Neither side may use memory that the other stores into;
 * this is not checked. */
int32_t kvb_run_beside(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                       kvb_task *between, kvb_run_times *times, kvb_load *load);

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct kvb_arena {
    uint8_t *base;      /* 64-byte aligned at least; on a page of the kind got, unless guarded */
    int64_t bytes;      /* as asked */
    int64_t mapped;     /* as mapped */
    int64_t page_bytes; /* of the pages asked for */
    int64_t huge_bytes; /* really backed by huge pages at the last kvb_arena_inspect */
    int64_t resident_bytes;
    int32_t pages;     /* as asked */
    int32_t guard;     /* 0, or: 1 the end touches an unreadable page, 2 the start does */
    void *map;         /* private */
    int64_t map_bytes; /* private */
} kvb_arena;

int32_t kvb_arena_open(int64_t bytes, int32_t pages, int32_t guard, kvb_arena *arena);
/* Read back what the kernel did: fills huge_bytes and resident_bytes. */
int32_t kvb_arena_inspect(kvb_arena *arena);
void kvb_arena_close(kvb_arena *arena);
