/* Wrong arguments: each gives a code and a message that names the argument, and writes no byte.
 * tests/kernels/test_arguments.py tests lengths and entries of tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static kvb_cache good_shape(void)
{
    return (kvb_cache){.layout = word_of("layout", "paged"),
                       .batch = 2,
                       .kv_heads = 2,
                       .head_dim = 24,
                       .capacity = 40,
                       .block_tokens = 8,
                       .blocks = 10};
}

/* Do `call` once for each value: `changed` is `good` with the value in `field`. All are refused. */
#define WRONG(good, field, call, code, name, ...)                     \
    do {                                                              \
        const int64_t values[] = {__VA_ARGS__};                       \
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) { \
            changed = good;                                           \
            changed.field = (__typeof__(changed.field))values[i];     \
            refused_with(call, code, name);                           \
        }                                                             \
    } while (0)

static void check_channels(void)
{
    static const float wrong[] = {0.0f, -1.0f, INFINITY, NAN};
    float channel[2 * 24];
    kvb_cache c = good_shape();
    c.k.dtype = word_of("dtype", "i8"), c.k.channel = channel;
    for (int i = 0; i < 48; i++)
        channel[i] = 0x1p-149f;
    expect(!kvb_cache_plan(&c) && !c.k.scale_bytes, "i8 with scales of channels: %s",
           kvb_message());
    for (int i = 0; i < 4; i++) {
        channel[47] = wrong[i];
        refused_with(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, "k.channel[47]");
    }
}

static void check_shapes(void)
{
    kvb_cache changed, c;
#define BAD_SHAPE(field, name, ...) \
    WRONG(good_shape(), field, kvb_cache_plan(&changed), KVB_BAD_ARGUMENT, name, __VA_ARGS__)
    BAD_SHAPE(layout, "layout", 99, -1);
    BAD_SHAPE(inner, "inner", 9);
    BAD_SHAPE(k.dtype, "dtype", 99);
    BAD_SHAPE(v.dtype, "dtype", -1);
    BAD_SHAPE(k.scale, "scale", 9);
    BAD_SHAPE(v.scale, "scale", 9);
    BAD_SHAPE(v.channel, "v.channel", 64); /* only K has channels */
    BAD_SHAPE(k.channel, "k.channel", 64); /* not with f32 */
    BAD_SHAPE(v_in_k, "v_in_k", 2);
    BAD_SHAPE(ring, "ring", 2);
    BAD_SHAPE(batch, "batch", 0, -1, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(kv_heads, "kv_heads", 0, -3, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(head_dim, "head_dim", 0, -8, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(v_dim, "v_dim", -24, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(capacity, "capacity", 0, -1, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(block_tokens, "block_tokens", 0, -16, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(blocks, "blocks", 0, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(pad, "pad", -64, 63);
    BAD_SHAPE(k.tensor, "k.tensor", 2); /* not with f32 */
    BAD_SHAPE(v.tensor, "v.tensor", 2);
    c = good_shape();
    c.k.dtype = c.v.dtype = word_of("dtype", "e4m3"), c.k.tensor = c.v.tensor = 2.0f;
    expect(!kvb_cache_plan(&c), "e4m3 with scales of the tensor: %s", kvb_message());
    static const float wrong[] = {-1.0f, INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        c.k.tensor = 1.0f, c.v.tensor = wrong[i];
        refused_with(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, "v.tensor");
    }
    refused_with(kvb_cache_plan(NULL), KVB_BAD_ARGUMENT, "cache");
    check_channels();
    c = good_shape();
    c.layout = word_of("layout", "head");
    c.batch = 1 << 20, c.kv_heads = 1 << 16, c.head_dim = 1024, c.capacity = INT32_MAX;
    refused_with(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, "capacity");
    c.head_dim = 1, c.v_dim = 1024;
    refused_with(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, "capacity");
    c = good_shape();
    refused_with(kvb_cache_bind(&c, &c), KVB_BAD_ARGUMENT, "cache");
    kvb_cache_plan(&c);
    refused_with(kvb_cache_bind(&c, NULL), KVB_BAD_ARGUMENT, "memory");
}

/* A cache feature that no kernel has yet: V inside rows of K. */
static void check_caches_to_come(void)
{
    kvb_cache changed;
#define CACHE_TO_COME(field, name, ...) \
    WRONG(good_shape(), field, kvb_cache_plan(&changed), KVB_UNSUPPORTED, name, __VA_ARGS__)
    CACHE_TO_COME(v_in_k, "v_in_k", 1);
    CACHE_TO_COME(v_offset, "v_offset", 64, -64);
    expect(!changed.bytes, "a refused cache was planned");
}

/* A decode feature that no kernel has yet: picked tokens. queries.c tests queries. */
static void check_decodes_to_come(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    const int64_t tokens[] = {3, 12};
    kvb_decode changed;
    const kvb_decode good = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4, .q_len = 1};
#define TO_COME(field, name, ...)                                                                \
    WRONG(good, field, kvb_task_decode(&changed, 1, &task), KVB_UNSUPPORTED, name, __VA_ARGS__); \
    WRONG(good, field, kvb_task_twin(&changed, 1, &task), KVB_UNSUPPORTED, name, __VA_ARGS__);   \
    WRONG(good, field, kvb_task_fill(&changed, 1, 1, &task), KVB_UNSUPPORTED, name, __VA_ARGS__)
    TO_COME(picked, "picked", (intptr_t)tokens);
    TO_COME(picks, "picked", 2);
    expect(!kvb_task_decode(&good, 1, &task), "one query: %s", kvb_message());
    kvb_task_free(task);
}

static void no_kernel(const kvb_work *work) { (void)work; }

/* Pairs of dtypes for which a variant, or a plug-in, has no kernel. */
static void check_pairs(const float *q, float *out)
{
    static const struct {
        const char *variant, *layout, *k, *v;
        int64_t v_dim;
        int32_t code;
        const char *says;
    } pairs[] = {
        {"perhead", "head", "q8_0", "q4_0", 0, KVB_BAD_ARGUMENT,
         "variant perhead has no kernel for K of q8_0 with V of q4_0 in the layout head"},
        {"dot", "blockt", "f16", "i8", 0, KVB_BAD_ARGUMENT,
         "variant dot has no kernel for K of f16 with V of i8 in the layout blockt"},
        {"round16", "position", "f32", "f16", 0, KVB_BAD_ARGUMENT,
         "variant round16 has no kernel for K of f32 with V of f16 in the layout position"},
        {NULL, "head", "f32", "f16", 0, KVB_UNSUPPORTED, "K and V differ in dtype"},
        {NULL, "head", "f32", "f32", 16, KVB_UNSUPPORTED, "K and V differ in dtype"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        rig r;
        kvb_task *task = NULL;
        kvb_cache shape = good_shape();
        shape.layout = word_of("layout", pairs[i].layout), shape.v_dim = pairs[i].v_dim;
        shape.k.dtype = word_of("dtype", pairs[i].k), shape.v.dtype = word_of("dtype", pairs[i].v);
        if (!rig_open(&r, shape, 0))
            return;
        kvb_decode a = {.cache = &r.cache, .q = q, .out = out, .q_heads = 4, .run = no_kernel};
        if (pairs[i].variant)
            a.run = NULL, a.variant = word_of("variant", pairs[i].variant);
        refused_with(kvb_task_decode(&a, 1, &task), pairs[i].code, pairs[i].says);
        refused_with(kvb_task_twin(&a, 1, &task), pairs[i].code, pairs[i].says);
        rig_close(&r);
    }
}

static void check_decodes(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    kvb_decode changed;
    const kvb_decode good = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4};
#define BAD_DECODE(field, name, ...)                                                              \
    WRONG(good, field, kvb_task_decode(&changed, 1, &task), KVB_BAD_ARGUMENT, name, __VA_ARGS__); \
    WRONG(good, field, kvb_task_twin(&changed, 1, &task), KVB_BAD_ARGUMENT, name, __VA_ARGS__)
    BAD_DECODE(cache, "cache", 0);
    BAD_DECODE(q, "q", 0);
    BAD_DECODE(out, "out", 0);
    BAD_DECODE(q_heads, "q_heads", 0, -2, 3, INT64_MAX);
    BAD_DECODE(window, "window", -1, INT64_MAX);
    BAD_DECODE(variant, "variant", 99);
    BAD_DECODE(schedule, "schedule", 99);
    BAD_DECODE(wrap, "wrap", -1, 1 << 20, INT64_MAX);
    BAD_DECODE(isa, "isa", 99, -1);
    BAD_DECODE(scale, "scale", -1);
    refused_with(kvb_task_decode(&good, 0, &task), KVB_BAD_ARGUMENT, "threads");
    refused_with(kvb_task_decode(&good, -1, &task), KVB_BAD_ARGUMENT, "threads");
    refused_with(kvb_task_decode(&good, 1 << 30, &task), KVB_BAD_ARGUMENT, "threads");
    refused_with(kvb_task_decode(NULL, 1, &task), KVB_BAD_ARGUMENT, "decode");
    refused_with(kvb_task_decode(&good, 1, NULL), KVB_BAD_ARGUMENT, "task");
    const int32_t kept = r->table[0];
    changed = good;
    /* not attended to, but inside the window of `wrap` */
    r->lengths[0] = 12, changed.window = 1, changed.wrap = 12, r->table[0] = -1;
    refused_with(kvb_task_decode(&changed, 1, &task), KVB_BAD_ARGUMENT, "table");
    r->lengths[0] = 3, r->table[0] = kept;
}

static void check_half_made_caches(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    kvb_cache changed;
    const kvb_decode a = {.cache = &changed, .q = q, .out = out, .q_heads = 4};
#define HALF_MADE(field, name, value) \
    WRONG(r->cache, field, kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, name, value)
    HALF_MADE(table, "table", 0);
    HALF_MADE(lengths, "lengths", 0);
    HALF_MADE(k.rows, "cache", 0);
    HALF_MADE(head_dim, "cache", 64);
}

static void check_stores(rig *r, float *k)
{
    kvb_task *task = NULL;
    kvb_store changed;
    const kvb_store good = {.cache = &r->cache, .k = k, .v = k, .tokens = 1};
#define BAD_STORE(field, name, ...)                                                               \
    WRONG(good, field, kvb_task_append(&changed, 1, &task), KVB_BAD_ARGUMENT, name, __VA_ARGS__); \
    WRONG(good, field, kvb_task_bulk(&changed, 1, &task), KVB_BAD_ARGUMENT, name, __VA_ARGS__)
    BAD_STORE(cache, "cache", 0);
    BAD_STORE(k, "k", 0);
    BAD_STORE(v, "v", 0);
    BAD_STORE(tokens, "tokens", 0, -1, 38, INT64_MAX); /* a sequence has 3 tokens of 40 */
    BAD_STORE(head_major, "head_major", 2);
    BAD_STORE(nt, "nt", -1);
    BAD_STORE(advance, "advance", 7);
    BAD_STORE(isa, "isa", 99);
    refused_with(kvb_task_bulk(NULL, 1, &task), KVB_BAD_ARGUMENT, "store");
    refused_with(kvb_task_bulk(&good, 1 << 30, &task), KVB_BAD_ARGUMENT, "threads");
    refused_with(kvb_task_unpack(NULL, 0, 1, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "cache");
    refused_with(kvb_task_unpack(&r->cache, 0, 1, NULL, k, 0, 1, &task), KVB_BAD_ARGUMENT, "k");
    refused_with(kvb_task_unpack(&r->cache, -1, 1, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "first");
    refused_with(kvb_task_unpack(&r->cache, 0, 41, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "tokens");
    refused_with(kvb_task_clear(NULL, 0, 1, &task), KVB_BAD_ARGUMENT, "cache");
    refused_with(kvb_reset(NULL), KVB_BAD_ARGUMENT, "cache");
}

/* A piece needs a read without steps, and must be whole lines. */
static void check_pieces(float *x)
{
    kvb_task *task = NULL;
    kvb_probe changed;
    x += (64 - (uintptr_t)x % 64) / sizeof *x;
    kvb_chain(x, 64, 1);
    for (int32_t op = word_of("op", "read"); op <= word_of("op", "clock"); op++) {
        const kvb_probe good = {
            .op = op, .a = x, .b = x, .c = x, .bytes = 64, .steps = op != word_of("op", "read")};
        if (op != word_of("op", "read"))
            WRONG(good, piece, kvb_task_probe(&changed, 1, &task), KVB_BAD_ARGUMENT,
                  "only a read without steps", 64, -64, 1);
    }
    kvb_probe good = {.op = word_of("op", "read"), .a = x, .bytes = 64};
    WRONG(good, piece, kvb_task_probe(&changed, 1, &task), KVB_BAD_ARGUMENT, "piece is", -64, 1, 63,
          65, INT64_MAX - 63, -INT64_MAX);
    good.steps = 1;
    WRONG(good, piece, kvb_task_probe(&changed, 1, &task), KVB_BAD_ARGUMENT,
          "only a read without steps", 64);
}

static void check_rest(float *x)
{
    kvb_task *task = NULL;
    kvb_team *team = NULL;
    kvb_arena arena;
    refused_with(kvb_team_open(NULL, 0, &team), KVB_BAD_ARGUMENT, "threads");
    refused_with(kvb_team_open(NULL, 1, NULL), KVB_BAD_ARGUMENT, "team");
    refused_with(kvb_arena_open(0, 0, 0, &arena), KVB_BAD_ARGUMENT, "bytes");
    refused_with(kvb_arena_open(64, 99, 0, &arena), KVB_BAD_ARGUMENT, "pages");
    refused_with(kvb_arena_open(64, 0, 3, &arena), KVB_BAD_ARGUMENT, "guard");
    refused_with(kvb_arena_open(64, 0, 0, NULL), KVB_BAD_ARGUMENT, "arena");
    kvb_probe probe = {.op = word_of("op", "decode"), .a = x, .bytes = 64};
    refused_with(kvb_task_probe(&probe, 1, &task), KVB_BAD_ARGUMENT, "op");
    probe.op = word_of("op", "read"), probe.bytes = 63;
    refused_with(kvb_task_probe(&probe, 1, &task), KVB_BAD_ARGUMENT, "bytes");
    probe.bytes = 64, probe.a = NULL;
    refused_with(kvb_task_probe(&probe, 1, &task), KVB_BAD_ARGUMENT, "a");
    refused_with(kvb_task_probe(NULL, 1, &task), KVB_BAD_ARGUMENT, "probe");
    check_pieces(x);
    refused_with(kvb_chain(NULL, 64, 1), KVB_BAD_ARGUMENT, "buffer");
}

void check_arguments(void)
{
    rig r;
    float *q = need(4096 * sizeof *q), *out = need(4096 * sizeof *out);
    check_shapes();
    if (!rig_open(&r, good_shape(), 0))
        return;
    memset(r.arena.base, 0x5a, (size_t)r.cache.bytes);
    memset(out, 0x5a, 4096 * sizeof *out);
    r.lengths[0] = 3, r.lengths[1] = 12;
    check_caches_to_come();
    check_decodes_to_come(&r, q, out);
    check_pairs(q, out);
    check_decodes(&r, q, out);
    check_half_made_caches(&r, q, out);
    check_stores(&r, q);
    check_rest(q);
    int64_t written = 0;
    for (int64_t i = 0; i < r.cache.bytes; i++)
        written += r.arena.base[i] != 0x5a;
    for (int64_t i = 0; i < 4096 * 4; i++)
        written += ((uint8_t *)out)[i] != 0x5a;
    expect(!written, "refused calls wrote %ld bytes", (long)written);
    rig_close(&r);
    free(q);
    free(out);
}
