/* The binary interface of the kvbench kernel library.
 *
 * It has plain declarations only. C includes it through kvbench.h. Python (cffi) reads it as it
 * stands, so it must not have preprocessor lines. Sizes are in bytes and counts are int64_t, unless
 * a name says otherwise. A word (layout, dtype, isa...) crosses the interface as its index in the
 * list that kvb_word() reads.
 *
 * A function that can fail returns a kvb_code. If it fails, it leaves its outputs untouched, and
 * kvb_message() says which argument is wrong.
 */

enum kvb_code {
    KVB_OK = 0,
    KVB_BAD_ARGUMENT = 1, /* a value is wrong: kvb_message() names the argument */
    KVB_UNSUPPORTED = 2,  /* this CPU cannot do it, or this build has no code for it */
    KVB_NO_MEMORY = 3,
    KVB_SYSTEM = 4, /* the operating system refused */
    KVB_FOREIGN = 5 /* a plug-in's kernel broke a rule of kvb_work */
};

/* Return the message of the last call that failed on this thread. It stays valid until the next
 * failure. */
const char *kvb_message(void);

/* ---- words ----------------------------------------------------------------------------------- */

/* Return the index-th word of a list, or null past its end. The lists are "op", "variant",
 * "layout", "inner", "dtype", "scale", "isa", "pages" and "schedule". */
const char *kvb_word(const char *list, int32_t index);

typedef struct kvb_work kvb_work; /* see "a kernel of your own" */

/* Extra features that a decode may ask for; a plug-in's kernel declares those that it supports. The
 * basic decode has one query for each sequence, and K and V of one dtype and width, each in a plane
 * of its own. kvb_cache and kvb_decode explain the fields. */
enum {
    KVB_TAKES_QUERIES = 1, /* q_len, ends */
    KVB_TAKES_PAIRS = 2,   /* K and V of two dtypes or widths */
    KVB_TAKES_V_IN_K = 4,
    KVB_TAKES_SINK = 8, /* SINK and KEPT need not be declared: the library does this work */
    KVB_TAKES_SOFTCAP = 16,
    KVB_TAKES_SLOPE = 32,
    KVB_TAKES_KEPT = 64,
    KVB_TAKES_MASK = 128, /* block and tree */
    KVB_TAKES_CHANNEL = 256,
    KVB_TAKES_PICKED = 512
};

/* One kernel of the registry, named op.variant.layout.dtype.isa. A word that does not apply is "-".
 * A decode is listed for K and V of one dtype. K and V of two dtypes run if both dtypes are
 * listed. */
typedef struct kvb_kernel {
    const char *op;
    const char *variant;
    const char *layout;
    const char *dtype;
    const char *isa;
    const char *about;
    int32_t runnable; /* this CPU has what the kernel needs */
    int32_t takes;    /* sum of the KVB_TAKES_* that a plug-in's kernel supports; 0 = basic only */
    /* a plug-in's kernel; null for kernels of the library, which run as tasks */
    void (*run)(const kvb_work *work);
} kvb_kernel;

/* Return the index-th kernel, or null past the end. */
const kvb_kernel *kvb_kernels(int32_t index);

/* The two planes of a cache. */
enum { KVB_K = 0, KVB_V = 1 };

/* Return the dtype to which a variant of decode rounds the values of a plane while it reads them:
 * the plane's own dtype if it does not round them. -1: the variant has no kernel for the layout
 * and dtype. */
int32_t kvb_reads(int32_t variant, int32_t layout, int32_t dtype, int32_t plane);
/* Return how coarsely a variant of decode rounds queries (`dtype` is that of K) and weights
 * (`dtype` is that of V). 0: it does not round in this way. `which` selects the number:
 *   0  queries are rounded to whole numbers from -n to n: returns n. The largest element of a query
 *      row, times the scale of the scores, becomes n
 *   1  weights are rounded to whole numbers: returns the number that the largest weight of a tile
 *      becomes. A weight is first multiplied by the scale of its row of V
 *   2  elements that share one largest value in 0 and 1: returns how many; 0 = all of them
 *   3  each element of a query and each weight is rounded by itself: returns its significant bits
 */
int32_t kvb_levels(int32_t variant, int32_t dtype, int32_t which);

/* Return the bytes of a cell: the bytes of a row that stay side by side in a layout that transposes
 * the plane (see kvb_cache). 1: the plane is in quads. 0: rows are contiguous, or the layout does
 * not support the dtype in this plane. */
int32_t kvb_cell(int32_t layout, int32_t dtype, int32_t plane);

/* Return 1 if this CPU runs the tier, 0 if it cannot or if this build lacks the tier. */
int32_t kvb_isa_runs(int32_t isa);
/* Return the best tier that this CPU runs. */
int32_t kvb_isa_best(void);
/* Return the default schedule. It is the same on every CPU. */
int32_t kvb_schedule_default(void);

/* One field of a struct of this file. A program can compare all fields with its own copy of this
 * file, and refuse a library that was built from another version. */
typedef struct kvb_field {
    /* such as "kvb_cache.capacity"; "kvb_cache" with offset 0 is the struct itself */
    const char *name;
    int64_t offset;
    int64_t size;
} kvb_field;
/* Return the index-th field, or null past the end. */
const kvb_field *kvb_fields(int32_t index);
/* Return the library's version, and the compiler and flags that built it. */
const char *kvb_build(void);

/* ---- the cache ------------------------------------------------------------------------------- */

/* K of a cache, or V: the format of its rows, and where they are in memory. */
typedef struct kvb_plane {
    int32_t dtype;
    int32_t scale; /* type of the rows' scales (i8): 0 = f32, 1 = f16 */
    float tensor;  /* 8-bit floats only: one scale for the whole plane, 0 = 1. An element's value is
                   * its code times `tensor`; stores divide by it, in float32 */
    /* set by kvb_cache_plan: bytes of a cell if the plane is transposed, else 0 */
    int32_t cell;
    /* K of i8 only: [kv_heads][elements of a row], one scale for each channel; null = none. An
     * element's value is its code times this scale. Stores divide by it, in float32; decode
     * multiplies q by it. Rows then have no scales. The caller owns the array, and must not change
     * it while the cache has rows */
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

/* K and V of one layer. In each plane, with its strides, the row of token t, KV head h, sequence b
 * is at
 *   head, position:  b * seq_stride + h * head_stride + slot * token_stride
 *   paged:           table[b * table_stride + slot / block_tokens] * seq_stride
 *                      + h * head_stride + (slot % block_tokens) * token_stride
 *   blockt:          V: as in `head`. K: in blocks of 16 slots. A block begins at
 *                      b * seq_stride + h * head_stride + slot / 16 * 16 * token_stride
 *                    and is a matrix [cells of a row][16]. A cell has four bytes (f32: one element,
 *                    bf16: two, i8: four) or two bytes (f16: one element). Cell i of a slot is at
 *                    (i * 16 + slot % 16) * bytes of a cell. The last block has its full size, too
 *   block16:         K and V in blocks of 16 slots, which begin as in blockt. The dtypes are i8,
 *                    e4m3, e5m2 and the packed ones (q8_0, q4_0). A block of packed rows begins
 *                    with its f16 scales: that of pack p is at (p * 16 + slot % 16) * 2. The codes
 *                    of all packs follow as one row. After the scales, byte j of a slot's codes
 *                    is at
 *                      K (cells of four bytes): (j / 4 * 16 + slot % 16) * 4 + j % 4
 *                      V (quads of four slots): j / 16 * 256 + slot % 16 / 4 * 64 + j % 16 * 4
 *                                               + slot % 4
 * where slot = t, or t % capacity in a ring. Scales (i8) use the scale strides in the same way. K
 * and V may differ in dtype and width. The library refuses V inside rows of K (v_in_k). */
typedef struct kvb_cache {
    int32_t layout;
    int32_t inner; /* paged only: order of rows in a block, by head or by token */
    int32_t ring;  /* 1: the slots are a ring, and a sequence may be longer than the capacity */
    /* reserved, must be 0. 1: V has no plane; each row of V begins v_offset bytes into that of K */
    int32_t v_in_k;
    int64_t v_offset;
    int64_t batch;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t v_dim;    /* elements of a row of V and of `out`; 0 = head_dim */
    int64_t capacity; /* tokens per sequence */
    int64_t block_tokens;
    int64_t blocks; /* paged: blocks in the pool */
    int64_t pad;    /* bytes after each head's rows, so that heads do not share cache sets */
    kvb_plane k;
    kvb_plane v;
    /* set by kvb_cache_plan */
    int64_t bytes;        /* rows of K, then of V, then scales of K, then of V */
    int64_t table_stride; /* table entries per sequence */
    /* owned by the caller */
    /* [batch][table_stride], paged only; a negative entry is skipped by stores */
    const int32_t *table;
    int64_t *lengths; /* [batch], tokens stored so far */
} kvb_cache;

/* Check the shape, and set strides and sizes. */
int32_t kvb_cache_plan(kvb_cache *cache);
/* Let the planes of a planned cache point into `memory`: 64-byte aligned, cache->bytes long. The
 * caller keeps owning it. */
int32_t kvb_cache_bind(kvb_cache *cache, void *memory);
/* Return the default `pad`: an odd number of 64-byte lines. */
int64_t kvb_cache_pad(void);

/* ---- tasks: one op on given arguments, checked and planned ----------------------------------- */

/* A kvb_task_* function checks and copies its arguments, and makes a task for `threads` threads;
 * kvb_run() then runs it. The task keeps the caller's pointers: what they point to must outlive the
 * task. The caller frees the task. */
typedef struct kvb_task kvb_task;
void kvb_task_free(kvb_task *task);

/* A sequence with n queries has n newest tokens. The mask says which of them a query attends to.
 * A query attends to all tokens before the newest ones, too. */
enum {
    KVB_MASK_CHAIN = 0, /* the tokens up to the query's own, as `ends` says */
    KVB_MASK_BLOCK = 1, /* all */
    KVB_MASK_TREE = 2   /* the tokens whose bits are set in the query's word of `tree` */
};

/* Decode attention for one or several queries of each sequence. A score is scale * q . k; then the
 * softcap, the slope and the mask are applied, in this order. A query that attends to no token gets
 * zeros. */
typedef struct kvb_decode {
    const kvb_cache *cache;
    const float *q; /* [batch][q_len][q_heads][head_dim] */
    float *out;     /* [batch][q_len][q_heads][v_dim] */
    int64_t q_heads;
    int64_t q_len; /* most queries of a sequence, up to 32; 0 = 1 */
    /* [batch][q_len]: query i attends to the first ends[i] tokens of its sequence. In a block or
     * tree, each end must be the sequence's length, or 0. 0: the sequence has no such query, and
     * its row of `out` is zeros. A sequence has the queries up to the last one whose end is not 0.
     * Null: every sequence has q_len queries. In a chain the last one then attends to all tokens,
     * and each one before it to one token less */
    const int64_t *ends;
    /* [q_heads]: an extra score in the softmax that has no value; it is not scaled, capped or
     * sloped. Null = none */
    const float *sink;
    int64_t window; /* attend to the last `window` of these tokens only; 0 = all */
    float scale;    /* 0 = 1 / sqrt(head_dim) */
    int32_t variant;
    int32_t isa;
    int32_t schedule; /* the order of reading rows, and what is prefetched meanwhile. off: nothing;
                       * cross: V while K is read, K while V is read; weave: K and V of the next
                       * block, line by line from several pages; stream: the next rows of the same
                       * plane, in address order, into L2 */
    /* 0 = off. n = core roof: every unit reads the first n tokens of the first sequence's first
     * head again and again, in place of its own tokens, in blocks of the same sizes */
    int64_t wrap;
    int32_t deterministic; /* 1: cut units by shape only, not by the number of threads */
    int32_t stages;        /* 1: time QK, softmax and PV apart (costs a few clock reads per tile) */
    void (*run)(
        const kvb_work *work); /* a plug-in's kernel, or null. It replaces the variant, which must
                                * be flash: units are cut the same. It ignores `schedule` and
                                * `stages`. With `wrap` it is called once for every window */
    float softcap;             /* a score becomes softcap * tanh(score / softcap); 0 = no cap */
    int32_t mask;              /* KVB_MASK_* */
    /* [batch][q_len]: a word for each query. Of a sequence with n queries, bit i is the i-th of its
     * n newest tokens */
    const uint32_t *tree;
    /* [q_heads], ALiBi: slope * (token - the query's own token) is added to a score; null = none.
     * In a chain the query's own token is the last one that it attends to. In a block or tree of n
     * queries, the i-th query's own token is the i-th of the n newest tokens */
    const float *slope;
    /* with a window: a query attends to the first `kept` tokens, too. A ring must still hold them
     */
    int64_t kept;
    /* reserved, must be null. [batch][picks]: the tokens to attend to, in ascending order */
    const int64_t *picked;
    int64_t picks;
} kvb_decode;

int32_t kvb_task_decode(const kvb_decode *args, int32_t threads, kvb_task **task);
/* Only read the rows that the decode task would read, with the same threads in the same order. */
int32_t kvb_task_twin(const kvb_decode *args, int32_t threads, kvb_task **task);
/* Write pseudo-random rows of unit variance. Each row is written by a thread that will read it in
 * the decode task. */
int32_t kvb_task_fill(const kvb_decode *args, int32_t threads, uint64_t seed, kvb_task **task);

/* ---- a kernel of your own -------------------------------------------------------------------- */

/* A plug-in is a shared object that exports
 *     const int32_t kvb_plugin = KVB_PLUGIN;
 *     const kvb_kernel *kvb_kernels(int32_t index);
 * Each kernel that it lists has the op "decode", a variant with a new name ([a-z0-9_]+), words of
 * this library for layout, dtype and isa (the tier whose instructions it needs), and `run`. It is
 * not linked to this library. example/plugin.c is a complete one. */
/* the version of this interface: it grows when kvb_kernel, kvb_plane, kvb_cache or kvb_work change
 */
enum { KVB_PLUGIN = 4 };

/* One unit of work for a plug-in's `run`: tokens first .. first + count of one sequence, for the
 * query heads of one or all KV heads. The library's threads call `run` for different units at the
 * same time, in any order. `run` may use the stack, must keep nothing between calls, and must write
 * nothing but max, sum and acc.
 * Rows are where kvb_cache says, each at a multiple of 64 bytes, but not packed rows and not
 * transposed planes. A row of i8 is multiplied by its scale, or each element by `channel`; 8-bit
 * floats are multiplied by `tensor` if that is not 0. Memory after a sequence's last token or a
 * row's last element may hold anything. Fields of features that the kernel does not declare in
 * `takes` are 0 or null. */
struct kvb_work {
    /* has the kernel's layout and dtype */
    const kvb_cache *cache;
    int64_t seq;
    int64_t head; /* the first KV head of the unit */
    /* KV heads of the unit: all of them if the heads of a token are side by side, else 1 */
    int64_t heads;
    int64_t group; /* query heads of each KV head */
    int64_t q_len; /* queries of this sequence */
    /* [q_len]: how many tokens of the sequence each query attends to; null: all of the unit's */
    const int64_t *ends;
    int64_t first;    /* the first token of the unit */
    int64_t count;    /* tokens of the unit, at least one */
    const float *q;   /* [q_len], each [heads][group][head_dim], unscaled */
    int64_t q_stride; /* floats from one query to the next in q */
    float scale;      /* score = scale * q . k */
    float *max;       /* out, [q_len][heads][group]: the largest score */
    float *sum;       /* out, [q_len][heads][group]: the sum of exp(score - max) */
    /* out, [q_len][heads][group][v_dim]: the sum of exp(score - max) * v. Before the call, max, sum
     * and acc hold anything */
    float *acc;
    /* The rest is as in kvb_decode, but for this unit alone. If `ends` is null, the own token of a
     * query, for slopes, is its sequence's last one. The library itself adds sinks, and calls `run`
     * for kept tokens as for a unit of their own */
    float softcap;
    int32_t mask;
    const uint32_t *tree;  /* [q_len] */
    const float *slope;    /* [heads][group] */
    const int64_t *picked; /* [picks], tokens of the sequence */
    int64_t picks;
};

/* ---- stores, moves, probes ------------------------------------------------------------------- */

/* Rows to store into a cache. */
typedef struct kvb_store {
    kvb_cache *cache;
    const float *k;
    const float *v;
    int64_t tokens; /* per sequence: 1 for append */
    /* source order: 0 [batch][tokens][kv_heads][head_dim], 1 [batch][kv_heads][tokens][head_dim] */
    int32_t head_major;
    int32_t nt; /* non-temporal stores */
    int32_t isa;
    /* 1: a pass adds `tokens` to the lengths; 0: lengths stay, so the next pass writes the same
     * places */
    int32_t advance;
} kvb_store;

/* Store one token for every sequence, after its last one. */
int32_t kvb_task_append(const kvb_store *args, int32_t threads, kvb_task **task);
/* Store `tokens` prompt tokens for every sequence, after its last one. */
int32_t kvb_task_bulk(const kvb_store *args, int32_t threads, kvb_task **task);
/* Zero every byte of the planes. */
int32_t kvb_task_clear(const kvb_cache *cache, int32_t isa, int32_t threads, kvb_task **task);
/* Decode `tokens` rows of each sequence to float32, from the `first`-th that the cache still holds.
 * k and v are [batch][tokens][kv_heads][dim of the plane]. Tokens that the cache does not hold
 * become zeros. */
int32_t kvb_task_unpack(const kvb_cache *cache, int64_t first, int64_t tokens, float *k, float *v,
                        int32_t isa, int32_t threads, kvb_task **task);
/* Set all lengths to zero; the rows stay in memory. */
int32_t kvb_reset(kvb_cache *cache);
/* Grow a cache in place. `to` is planned with a larger capacity and bound to the same memory as
 * `from`; it gets the lengths of `from`. Layouts: head, blockt, block16. One thread does it. The
 * first pass moves the rows; each further pass moves as many bytes between the same places. */
int32_t kvb_task_repack(const kvb_cache *from, const kvb_cache *to, int32_t isa, int32_t threads,
                        kvb_task **task);
/* Transpose `matrices` float32 matrices. to_head_major 1: [rows][heads][dim] -> [heads][rows][dim];
 * 0: the reverse. */
int32_t kvb_task_transpose(const float *from, float *to, int64_t matrices, int64_t rows,
                           int64_t heads, int64_t dim, int32_t to_head_major, int32_t isa,
                           int32_t threads, kvb_task **task);
/* Copy one row of `width` floats to row *position of each of `matrices` [rows][width] matrices. A
 * pass then adds 1 to *position, or sets it to 0 after the last row. The caller owns it. */
int32_t kvb_task_logits(const float *from, float *to, int64_t matrices, int64_t rows, int64_t width,
                        int64_t *position, int32_t isa, int32_t threads, kvb_task **task);

/* A probe: measure what the machine itself can do. */
typedef struct kvb_probe {
    int32_t op; /* read write write_nt copy copy_nt triad flops dot8 dot16 latency clock */
    int32_t isa;
    void *a;          /* read: source; write, copy, triad: destination; latency: the chain */
    const void *b;    /* copy, triad: source */
    const void *c;    /* triad: second source */
    int64_t bytes;    /* of each buffer; a multiple of 64 */
    int64_t distance; /* read, copy: prefetch `distance` bytes ahead; 0 = hardware prefetch only.
                       * With 0, read takes lines of the eight eighths of a thread's share in turn:
                       * a core that can follow eight runs of lines is idle with one */
    int64_t steps; /* read to triad: times over the buffers, 0 = once; latency: loads (a pass starts
                    * where the last one stopped); flops, dot8, dot16: rounds; clock: additions */
    /* read: prefetch as this schedule does, with lines in address order; 0 (off): as `distance`
     * says */
    int32_t schedule;
    /* read without steps: bytes of a pass, a multiple of 64; 0 = the whole buffer. A pass goes on
     * where the last one stopped, and after the end of the buffer at its start */
    int64_t piece;
} kvb_probe;

int32_t kvb_task_probe(const kvb_probe *args, int32_t threads, kvb_task **task);
/* Link the 64-byte lines of a buffer into one random cycle, for the op latency. */
int32_t kvb_chain(void *buffer, int64_t bytes, uint64_t seed);

/* What one pass moves and computes. */
typedef struct kvb_traffic {
    double flops;
    /* bytes that any kernel must move. Decode: K and V once per KV head, scales of rows and of
     * channels, q, out, page table; without the few bytes of sinks, slopes, ends and tree. Stores:
     * the rows' elements, and their source */
    double compulsory;
    /* bytes that load and store instructions ask for; unknown for a plug-in: equal to compulsory */
    double issued;
    double line; /* 64-byte lines touched, times 64 */
    double kv;   /* rows of K and V alone */
    double scales;
    double table;
    double ai; /* flops / compulsory */
} kvb_traffic;

int32_t kvb_task_traffic(const kvb_task *task, kvb_traffic *traffic);
/* Compute a checksum of all that a twin, or the probe `read`, has loaded in all its passes: the sum
 * of the 16-bit words modulo 2^16. A word counts each time that it was read. A scale counts as its
 * float32 value. Other tasks return KVB_UNSUPPORTED. */
int32_t kvb_task_sum(const kvb_task *task, uint32_t *sum);

/* Join tasks to a series: one pass does them one after the other. The time of tasks[i] counts to
 * stage_share[kinds[i]] of kvb_run_times. The caller keeps owning the tasks, and frees them after
 * the series. A task may occur several times. A task that adds tokens, counts stages or is itself a
 * series is refused. kvb_run() refuses a series as `between`, or together with tasks that count
 * stages. */
int32_t kvb_task_series(kvb_task *const *tasks, const int32_t *kinds, int32_t count,
                        int32_t threads, kvb_task **task);

/* ---- threads and time ------------------------------------------------------------------------ */

/* Threads that stay alive, thread i pinned to cpus[i] (null: not pinned). They sleep until kvb_run
 * needs them. The caller closes the team. */
typedef struct kvb_team kvb_team;
int32_t kvb_team_open(const int32_t *cpus, int32_t threads, kvb_team **team);
void kvb_team_close(kvb_team *team);

typedef struct kvb_run_times {
    double seconds;         /* from the common start to the end of the last pass */
    double *pass_seconds;   /* [passes] or null */
    double *thread_seconds; /* [threads] or null: time in the op's own work, without waiting */
    /* shares of QK, softmax and PV in the time, if the task counts stages; for a series, shares of
     * its three kinds */
    double stage_share[3];
    int64_t switches; /* involuntary context switches of the team during the run */
    int64_t faults;   /* page faults of the team during the run */
} kvb_run_times;

/* Run `passes` passes: pass i runs tasks[i % count]. With `between`, that task runs untimed before
 * every pass, and `seconds` is the sum of the passes alone. Every task must be planned for the
 * team's number of threads. A decode, twin or fill is planned for fixed lengths: a run that would
 * change them before its pass is refused. KVB_FOREIGN comes after the run: then `times` is set. */
int32_t kvb_run(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                kvb_task *between, kvb_run_times *times);

/* A load: passes that a second team does during a run, round robin over its tasks. */
typedef struct kvb_load {
    kvb_team *team;         /* another team than the run's, on other CPUs */
    kvb_task *const *tasks; /* [count], planned for this team; the run must not have them, too */
    int32_t count;
    int64_t ahead; /* passes before the run begins: 1 to 2^30 - 1 */
    /* 0 to 1000: after each unit of work a thread spins `pause` times as long as the unit took. A
     * unit is: in a decode or twin, the tokens of a sequence for one KV head (or for all KV heads,
     * or for one query row), or a thread's part of them; in a probe that moves bytes, at most 128
     * KiB of each buffer; in any other task, all that a thread does in a pass */
    double pause;
    int64_t passes; /* out: passes after the first `ahead`; the last one ends after the run */
    double seconds; /* out: how long these passes took, with the waits */
} kvb_load;

/* Do a kvb_run while a load works beside it. The load does `ahead` passes before the run begins,
 * and stops at the end of the pass in which the run ends. All arguments are checked before anything
 * runs. A message about the load begins with "load: ". If a task of the load adds tokens, its cache
 * must be a ring. Neither side may use memory that the other side stores into: this is not
 * checked. */
int32_t kvb_run_beside(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                       kvb_task *between, kvb_run_times *times, kvb_load *load);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Memory with the kind of pages that was asked for. */
typedef struct kvb_arena {
    uint8_t *base;      /* aligned to 64 bytes; without a guard, to a page */
    int64_t bytes;      /* as asked for */
    int64_t mapped;     /* bytes that were mapped */
    int64_t page_bytes; /* size of the pages asked for */
    int64_t huge_bytes; /* bytes backed by huge pages at the last kvb_arena_inspect */
    int64_t resident_bytes;
    int32_t pages;     /* a word of "pages", as asked for */
    int32_t guard;     /* 0; or an unreadable page 1: follows the end, 2: precedes the start */
    void *map;         /* private */
    int64_t map_bytes; /* private */
} kvb_arena;

/* Map `bytes` bytes; kvb_arena_close() unmaps them. */
int32_t kvb_arena_open(int64_t bytes, int32_t pages, int32_t guard, kvb_arena *arena);
/* Ask the operating system what it did: sets huge_bytes and resident_bytes. */
int32_t kvb_arena_inspect(kvb_arena *arena);
void kvb_arena_close(kvb_arena *arena);
