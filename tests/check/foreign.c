/* The documented plug-in, called for units of the library: every layout, window, ring and number of
 * threads gives the same as the scalar tier. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
    Q_HEADS = 6,
    KV_HEADS = 2,
    DIM = 37,
    BATCH = 2,
    CAPACITY = 1400,
    COUNT = BATCH * Q_HEADS * DIM,
    QUERIES = 4
};

const kvb_kernel *plugin_kernels(int32_t index); /* example/plugin.c */

static void check_answers(kvb_decode args, const char *layout)
{
    float right[QUERIES * COUNT], out[QUERIES * COUNT], first[QUERIES * COUNT];
    const int64_t count = (args.q_len ? args.q_len : 1) * COUNT;
    kvb_decode plain = args;
    args.out = out, plain.out = right, plain.run = NULL, plain.isa = word_of("isa", "scalar");
    expect(!run_decode(&plain, 1), "decode: %s", kvb_message());
    for (args.deterministic = 0; args.deterministic < 2; args.deterministic++)
        for (int32_t threads = 1; threads <= 16; threads += 5) {
            memset(out, 0xff, sizeof out);
            expect(!run_decode(&args, threads), "plug-in: %s", kvb_message());
            expect(apart(out, right, count) <= 2e-6 * 1.75,
                   "plug-in %s on %d threads, %lld queries, mask %d: error %.3g", layout, threads,
                   (long long)args.q_len, args.mask, apart(out, right, count));
            if (threads == 1)
                memcpy(first, out, sizeof out);
            expect(!args.deterministic || !memcmp(first, out, (size_t)count * sizeof *out),
                   "plug-in %s: %d threads give other bits than 1", layout, threads);
            expect(!run_twin(&args, threads), "twin of a plug-in: %s", kvb_message());
        }
    for (args.wrap = 1; args.wrap < 100; args.wrap += 32)
        expect(!run_decode(&args, 2) && isfinite(out[0]), "plug-in, wrapped: %s", kvb_message());
}

/* Check every mask, a second sequence with two queries, and any ends. */
static void check_several(kvb_decode args, const char *layout)
{
    static const uint32_t tree[BATCH * QUERIES] = {1, 3, 5, 13, 1, 2};
    const int64_t *held = args.cache->lengths;
    const int64_t ends[BATCH * QUERIES] = {held[0], held[0], held[0], held[0], held[1], held[1]};
    args.q_len = QUERIES;
    check_answers(args, layout);
    args.mask = KVB_MASK_TREE, args.tree = tree;
    check_answers(args, layout);
    args.ends = ends;
    check_answers(args, layout);
    args.mask = KVB_MASK_BLOCK, args.tree = NULL;
    check_answers(args, layout);
    const int64_t any[BATCH * QUERIES] = {9, held[0], 0, 300, held[1], 1};
    args.mask = KVB_MASK_CHAIN, args.ends = any;
    check_answers(args, layout);
}

/* What a kernel gets for scores: the cap, and the slopes of its unit's query heads. */
static const float slopes[Q_HEADS] = {0.5f, 0.25f, 0.01f, 0.0f, 0.001f, 0.1f};
static int32_t badly_told;

static void look(const kvb_work *work)
{
    if (work->softcap != 2.0f || work->slope != slopes + work->head * work->group)
        __atomic_store_n(&badly_told, 1, __ATOMIC_RELAXED);
    memset(work->max, 0, (size_t)(work->heads * work->group) * sizeof *work->max);
}

static void check_told(kvb_decode args, const char *layout)
{
    float out[COUNT];
    badly_told = 0;
    args.out = out, args.run = look, args.softcap = 2.0f, args.slope = slopes;
    expect(!run_decode(&args, 3) && !badly_told, "plug-in %s: cap and slopes are others", layout);
}

/* Sinks and kept tokens, which the kernel does not see. */
static void check_sinks(kvb_decode args, const char *layout)
{
    static const float sinks[Q_HEADS] = {6.0f, -INFINITY, 0.0f, 3.0f, 8.0f, 50.0f};
    args.sink = sinks;
    check_answers(args, layout);
    if (!args.window) {
        args.window = 700, args.kept = 300;
        check_answers(args, layout);
    }
}

static void check_refusals(kvb_decode args)
{
    kvb_task *task = NULL;
    args.variant = word_of("variant", "perhead");
    expect(kvb_task_decode(&args, 1, &task) == KVB_BAD_ARGUMENT && strstr(kvb_message(), "variant"),
           "a plug-in's units are cut as perhead's: %s", kvb_message());
    args.variant = 0, args.stages = 1;
    float out[COUNT];
    args.out = out;
    expect(!run_decode(&args, 2), "stages of a plug-in: %s", kvb_message());
    args.q_len = 2, args.window = 9;
    expect(kvb_task_decode(&args, 1, &task) == KVB_UNSUPPORTED && strstr(kvb_message(), "window"),
           "a plug-in is asked for a window of two queries: %s", kvb_message());
}

/* A first score from which nothing may be subtracted. */
static void check_first_score(const kvb_kernel *kernel)
{
    rig r;
    kvb_cache shape = {.layout = word_of("layout", kernel->layout),
                       .batch = BATCH,
                       .kv_heads = KV_HEADS,
                       .head_dim = DIM,
                       .capacity = CAPACITY,
                       .block_tokens = 100,
                       .blocks = BATCH * 14};
    if (!rig_open(&r, shape, 0))
        return;
    float right[COUNT], out[COUNT], q[COUNT], *row = (float *)(void *)r.cache.k.rows,
                                              *v = (float *)(void *)r.cache.v.rows;
    noise(row, r.cache.bytes / (int64_t)sizeof *row, 23);
    for (int64_t i = 0; i < COUNT; i++)
        q[i] = 1.0f;
    row[0] = -INFINITY, v[0] = 1e6f;
    r.lengths[0] = r.lengths[1] = 9;
    kvb_decode args = {.cache = &r.cache,
                       .q = q,
                       .out = right,
                       .q_heads = Q_HEADS,
                       .isa = word_of("isa", "scalar")};
    expect(!run_decode(&args, 1), "decode: %s", kvb_message());
    args.out = out, args.run = kernel->run;
    expect(!run_decode(&args, 1), "plug-in: %s", kvb_message());
    expect(apart(out, right, COUNT) <= 2e-6 * 1.75, "plug-in %s, -inf first: error %.3g",
           kernel->layout, apart(out, right, COUNT));
    rig_close(&r);
}

static void check_layout(const kvb_kernel *kernel, const float *source, const float *q)
{
    /* the last pair in a ring */
    static const int64_t lengths[][BATCH] = {{1400, 700}, {1, 0}, {2000, 1399}};
    for (int i = 0; i < 3; i++) {
        rig r;
        kvb_cache shape = {.layout = word_of("layout", kernel->layout),
                           PLANES(word_of("dtype", kernel->dtype), 0),
                           .ring = i == 2,
                           .batch = BATCH,
                           .kv_heads = KV_HEADS,
                           .head_dim = DIM,
                           .inner = i & 1,
                           .capacity = CAPACITY,
                           .block_tokens = 100,
                           .blocks = BATCH * 14,
                           .pad = kvb_cache_pad()};
        if (!rig_open(&r, shape, 1 + i % 2))
            return;
        kvb_store put = {
            .cache = &r.cache, .k = source, .v = source + DIM, .tokens = CAPACITY, .isa = tiers[0]};
        expect(!run_bulk(&put, 3), "bulk: %s", kvb_message());
        memcpy(r.lengths, lengths[i], sizeof lengths[i]);
        kvb_decode args = {.cache = &r.cache,
                           .q = q,
                           .q_heads = Q_HEADS,
                           .window = i == 2 ? 1111 : 0,
                           .isa = tiers[0],
                           .run = kernel->run};
        float none[COUNT];
        args.out = none;
        if (i == 0) {
            check_refusals(args);
            check_several(args, kernel->layout);
        }
        if (r.lengths[0] >= 100) {
            check_answers(args, kernel->layout);
            check_sinks(args, kernel->layout);
            check_told(args, kernel->layout);
        } else
            expect(!run_decode(&args, 3) && none[COUNT - 1] == 0.0f,
                   "a sequence without tokens: %g", (double)none[0]);
        rig_close(&r);
    }
}

void check_foreign(void)
{
    int64_t floats = (int64_t)BATCH * CAPACITY * KV_HEADS * DIM + DIM;
    float *source = need((size_t)floats * sizeof *source), q[QUERIES * COUNT];
    noise(source, floats, 21);
    noise(q, QUERIES * COUNT, 22);
    expect(kvb_plugin == KVB_PLUGIN && plugin_kernels(0) && !plugin_kernels(-1),
           "the plug-in exports no registry");
    for (int32_t i = 0; plugin_kernels(i); i++) {
        check_layout(plugin_kernels(i), source, q);
        check_first_score(plugin_kernels(i));
    }
    free(source);
}
