/* Moves: every tier and number of threads writes the same bytes to the same places, in guarded
 * memory. A move that is not possible is refused by the name of its argument. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void wrong(int32_t code, const char *name) { refused_with(code, KVB_BAD_ARGUMENT, name); }

/* ---- transpose and logits -------------------------------------------------------------------- */

enum { MATRICES = 2, ROWS = 5, HEADS = 3 };

static int32_t run_transpose(const float *from, float *to, int64_t dim, int32_t to_head_major,
                             int32_t isa, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_transpose(from, to, MATRICES, ROWS, HEADS, dim, to_head_major, isa,
                                      threads, &task);
    return run_on(code, task, threads);
}

static void check_transpose(int64_t dim, int32_t isa, int32_t threads)
{
    const int64_t floats = MATRICES * ROWS * HEADS * dim;
    kvb_arena from, to;
    if (!expect(!kvb_arena_open(4 * floats, 0, 1, &from) && !kvb_arena_open(4 * floats, 0, 1, &to),
                "arena: %s", kvb_message()))
        return;
    float *source = (float *)from.base, *turned = (float *)to.base;
    float *right = need((size_t)floats * sizeof *right),
          *first = need((size_t)floats * sizeof *first);
    noise(source, floats, 7);
    memcpy(first, source, (size_t)floats * sizeof *first);
    for (int64_t m = 0; m < MATRICES; m++)
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t h = 0; h < HEADS; h++)
                memcpy(right + ((m * HEADS + h) * ROWS + r) * dim,
                       source + ((m * ROWS + r) * HEADS + h) * dim, (size_t)dim * sizeof *right);
    expect(!run_transpose(source, turned, dim, 1, isa, threads), "transpose: %s", kvb_message());
    expect(!memcmp(turned, right, (size_t)floats * sizeof *right),
           "%s: rows of %ld floats are in the wrong place, by %d threads", kvb_word("isa", isa),
           (long)dim, threads);
    memset(source, 0, (size_t)floats * sizeof *source);
    expect(!run_transpose(turned, source, dim, 0, isa, threads), "back: %s", kvb_message());
    expect(!memcmp(source, first, (size_t)floats * sizeof *first),
           "%s: rows of %ld floats do not come back, by %d threads", kvb_word("isa", isa),
           (long)dim, threads);
    free(right);
    free(first);
    kvb_arena_close(&from);
    kvb_arena_close(&to);
}

/* Each pass writes the next position, and after the last the first. Nothing else is written. */
static void check_logits(int64_t width, int32_t isa, int32_t threads)
{
    const int64_t floats = MATRICES * ROWS * width;
    int64_t position = ROWS - 2;
    float row[MATRICES * 80];
    kvb_arena arena;
    if (!expect(!kvb_arena_open(4 * floats, 0, 1, &arena), "arena: %s", kvb_message()))
        return;
    float *to = (float *)arena.base, *right = need((size_t)floats * sizeof *right);
    memset(to, 0, (size_t)floats * sizeof *to);
    for (int64_t pass = 0; pass < 3; pass++) {
        const int64_t at = position;
        noise(row, MATRICES * width, (uint64_t)(pass + 1));
        for (int64_t m = 0; m < MATRICES; m++)
            memcpy(right + (m * ROWS + at) * width, row + m * width, (size_t)width * sizeof *row);
        kvb_task *task = NULL;
        int32_t code =
            kvb_task_logits(row, to, MATRICES, ROWS, width, &position, isa, threads, &task);
        expect(!run_on(code, task, threads), "logits: %s", kvb_message());
        expect(position == (at + 1) % ROWS, "position is %ld behind %ld", (long)position, (long)at);
        for (int64_t m = 0; m < MATRICES; m++)
            expect(!memcmp(to + (m * ROWS + at) * width, right + (m * ROWS + at) * width,
                           (size_t)width * sizeof *to),
                   "%s: %ld logits are in the wrong place, by %d threads", kvb_word("isa", isa),
                   (long)width, threads);
    }
    for (int64_t m = 0; m < MATRICES; m++)
        for (int64_t i = width; i < (ROWS - 2) * width; i++)
            expect(to[m * ROWS * width + i] == 0.0f, "logits wrote to another position");
    free(right);
    kvb_arena_close(&arena);
}

static void refuse_matrices(float *x)
{
    kvb_task *task = NULL;
    int64_t position = 0, beyond = 1;
    wrong(kvb_task_transpose(NULL, x, 1, 1, 1, 1, 1, 0, 1, &task), "from");
    wrong(kvb_task_transpose(x, NULL, 1, 1, 1, 1, 1, 0, 1, &task), "to");
    wrong(kvb_task_transpose(x, x + 8, 0, 1, 1, 1, 1, 0, 1, &task), "matrices");
    wrong(kvb_task_transpose(x, x + 8, 1, 0, 1, 1, 1, 0, 1, &task), "rows");
    wrong(kvb_task_transpose(x, x + 8, 1, 1, -1, 1, 1, 0, 1, &task), "heads");
    wrong(kvb_task_transpose(x, x + 8, 1, 1, 1, 0, 1, 0, 1, &task), "dim");
    wrong(kvb_task_transpose(x, x + 8, 1, INT64_MAX, 1, 1, 1, 0, 1, &task), "overflows");
    wrong(kvb_task_transpose(x, x + 8, 1, 1, 1, 1, 2, 0, 1, &task), "to_head_major");
    wrong(kvb_task_transpose(x, x + 3, 1, 2, 2, 1, 1, 0, 1, &task), "to overlaps from");
    wrong(kvb_task_transpose(x, x + 8, 1, 1, 1, 1, 1, 99, 1, &task), "isa");
    wrong(kvb_task_transpose(x, x + 8, 1, 1, 1, 1, 1, 0, 0, &task), "threads");
    wrong(kvb_task_transpose(x, x + 8, 1, 1, 1, 1, 1, 0, 1, NULL), "task");
    wrong(kvb_task_logits(NULL, x, 1, 1, 1, &position, 0, 1, &task), "from");
    wrong(kvb_task_logits(x, NULL, 1, 1, 1, &position, 0, 1, &task), "to");
    wrong(kvb_task_logits(x, x + 8, 1, 1, 0, &position, 0, 1, &task), "width");
    wrong(kvb_task_logits(x, x + 8, 1, 1, 1, NULL, 0, 1, &task), "position");
    wrong(kvb_task_logits(x, x + 8, 1, 1, 1, &beyond, 0, 1, &task), "position");
    wrong(kvb_task_logits(x + 8, x + 4, 1, 2, 4, &position, 0, 1, &task), "to overlaps from");
}

/* ---- repack ---------------------------------------------------------------------------------- */

static int32_t run_repack(const kvb_cache *from, const kvb_cache *to, int32_t isa, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_repack(from, to, isa, threads, &task);
    return run_on(code, task, threads);
}

/* Grow by a few tokens and by many, so that stretches overlap their old places, or do not. */
static void check_repack(const char *layout, const char *dtype, const char *v_dtype, int64_t grown,
                         int32_t isa)
{
    enum { DIM = 40, V_DIM = 70, BATCH = 2, HEADS_OF = 3 };
    const int64_t capacity = 21;
    const int32_t scale = word_of("scale", "f16");
    rig r;
    if (!rig_open(&r,
                  (kvb_cache){.layout = word_of("layout", layout),
                              .k = {.dtype = word_of("dtype", dtype), .scale = scale},
                              .v = {.dtype = word_of("dtype", v_dtype), .scale = scale},
                              .batch = BATCH,
                              .kv_heads = HEADS_OF,
                              .head_dim = DIM,
                              .v_dim = strcmp(dtype, v_dtype) ? V_DIM : DIM,
                              .capacity = grown},
                  1))
        return;
    kvb_cache small = r.cache;
    int64_t lengths[BATCH] = {0, 0};
    small.capacity = capacity;
    small.lengths = lengths;
    expect(!kvb_cache_plan(&small) && !kvb_cache_bind(&small, r.arena.base), "plan: %s",
           kvb_message());
    const int64_t rows = BATCH * capacity * HEADS_OF;
    const int64_t floats[2] = {rows * small.k.dim, rows * small.v.dim}; /* K and V in turn */
    float *of[6];
    for (int i = 0; i < 6; i++)
        of[i] = need((size_t)floats[i % 2] * sizeof *of[i]);
    noise(of[0], floats[0], 3);
    noise(of[1], floats[1], 4);
    kvb_store store = {.cache = &small, .k = of[0], .v = of[1], .tokens = capacity, .isa = isa};
    expect(!run_bulk(&store, 1), "bulk: %s", kvb_message());
    lengths[0] = capacity, lengths[1] = capacity / 2 + 1;
    expect(!run_unpack(&small, 0, capacity, of[2], of[3], isa, 1), "unpack: %s", kvb_message());
    expect(!run_repack(&small, &r.cache, isa, 1), "repack: %s", kvb_message());
    expect(!memcmp(r.lengths, lengths, sizeof lengths), "the lengths were not copied");
    expect(!run_unpack(&r.cache, 0, capacity, of[4], of[5], isa, 1), "unpack: %s", kvb_message());
    for (int side = 2; side < 4; side++)
        expect(!memcmp(of[side], of[side + 2], (size_t)floats[side % 2] * sizeof *of[side]),
               "%s: rows of %s %s+%s change where %ld tokens become %ld", kvb_word("isa", isa),
               layout, dtype, v_dtype, (long)capacity, (long)grown);
    for (int i = 0; i < 6; i++)
        free(of[i]);
    rig_close(&r);
}

static void refuse_repacks(void)
{
    rig r;
    kvb_task *task = NULL;
    kvb_cache shape = {.layout = word_of("layout", "head"),
                       .batch = 1,
                       .kv_heads = 2,
                       .head_dim = 16,
                       .capacity = 20};
    if (!rig_open(&r, shape, 0))
        return;
    kvb_cache smaller = r.cache, other = r.cache;
    smaller.capacity = 8;
    kvb_cache_plan(&smaller);
    wrong(run_repack(&r.cache, &smaller, 0, 1), "capacity");
    other.head_dim = 8;
    kvb_cache_plan(&other);
    wrong(run_repack(&r.cache, &other, 0, 1), "head_dim");
    other = r.cache, other.v_dim = 8;
    kvb_cache_plan(&other);
    wrong(run_repack(&r.cache, &other, 0, 1), "v_dim");
    wrong(run_repack(NULL, &r.cache, 0, 1), "cache");
    wrong(run_repack(&r.cache, NULL, 0, 1), "cache");
    wrong(run_repack(&r.cache, &r.cache, 99, 1), "isa");
    wrong(kvb_task_repack(&r.cache, &r.cache, 0, 1, NULL), "task");
    expect(kvb_task_repack(&r.cache, &r.cache, 0, 2, &task) == KVB_UNSUPPORTED &&
               strstr(kvb_message(), "threads is 2"),
           "two threads: %s", kvb_message());
    expect(!kvb_task_repack(&r.cache, &r.cache, 0, 1, &task), "repack: %s", kvb_message());
    r.lengths[0] = 21; /* after the task was made */
    wrong(run_on(KVB_OK, task, 1), "lengths");
    rig_close(&r);
    shape.layout = word_of("layout", "position");
    if (!rig_open(&r, shape, 0))
        return;
    wrong(run_repack(&r.cache, &r.cache, 0, 1), "layout is");
    rig_close(&r);
}

void check_moves(void)
{
    static const int64_t dims[] = {1, 16, 24, 33, 80};
    static const char *const dtypes[] = {"f32", "f16", "i8", "q8_0", "q4_0"};
    float x[64];
    memset(x, 0, sizeof x);
    refuse_matrices(x);
    refuse_repacks();
    for (int tier = 0; tiers[tier] >= 0; tier++) {
        for (int i = 0; i < 5; i++)
            for (int32_t threads = 1; threads <= 3; threads++) {
                check_transpose(dims[i], tiers[tier], threads);
                check_logits(dims[i], tiers[tier], threads);
            }
        for (int i = 0; i < 5; i++)
            for (int64_t grown = 21; grown < 61; grown += 13)
                for (int apart = 0; apart < 2; apart++) {
                    const char *v = dtypes[(i + apart) % 5];
                    check_repack("head", dtypes[i], v, grown, tiers[tier]);
                    if (i < 3)
                        check_repack("blockt", dtypes[i], v, grown, tiers[tier]);
                    if (i >= 2)
                        check_repack("block16", dtypes[i], dtypes[2 + (i - 2 + apart) % 3], grown,
                                     tiers[tier]);
                }
    }
}
