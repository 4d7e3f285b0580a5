/* Wrong arguments: a code, a message that names the argument, and not a byte written. Lengths and
 * entries of tables are tests/kernels/test_arguments.py's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void refused(int32_t code, int32_t right, const char *name)
{
    expect(code == right && strstr(kvb_message(), name), "bad %s: code %d, message \"%s\"", name,
           code, code ? kvb_message() : "");
}

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

/* `call` with `changed` as `good` but for a field, once with each of the values: all refused. */
#define WRONG(good, field, call, code, name, ...)                     \
    do {                                                              \
        const int64_t values[] = {__VA_ARGS__};                       \
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) { \
            changed = good;                                           \
            changed.field = (__typeof__(changed.field))values[i];     \
            refused(call, code, name);                                \
        }                                                             \
    } while (0)

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
    BAD_SHAPE(k.reserved, "reserved", 1);
    BAD_SHAPE(v.reserved, "reserved", -1);
    BAD_SHAPE(v_in_k, "v_in_k", 2);
    BAD_SHAPE(ring, "ring", 2);
    BAD_SHAPE(batch, "batch", 0, -1, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(kv_heads, "kv_heads", 0, -3, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(head_dim, "head_dim", 0, -8, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(capacity, "capacity", 0, -1, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(block_tokens, "block_tokens", 0, -16, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(blocks, "blocks", 0, INT64_MAX, -INT64_MAX);
    BAD_SHAPE(pad, "pad", -64, 63);
    BAD_SHAPE(k.tensor, "k.tensor", 2); /* of f32 */
    BAD_SHAPE(v.tensor, "v.tensor", 2);
    c = good_shape();
    c.k.dtype = c.v.dtype = word_of("dtype", "e4m3"), c.k.tensor = c.v.tensor = 2.0f;
    expect(!kvb_cache_plan(&c), "e4m3 with scales of the tensor: %s", kvb_message());
    static const float wrong[] = {-1.0f, INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        c.k.tensor = 1.0f, c.v.tensor = wrong[i];
        refused(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, "v.tensor");
    }
    refused(kvb_cache_plan(NULL), KVB_BAD_ARGUMENT, "cache");
    c = good_shape();
    c.layout = word_of("layout", "head");
    c.batch = 1 << 20, c.kv_heads = 1 << 16, c.head_dim = 1024, c.capacity = INT32_MAX;
    refused(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, "capacity");
    c = good_shape();
    refused(kvb_cache_bind(&c, &c), KVB_BAD_ARGUMENT, "cache");
    kvb_cache_plan(&c);
    refused(kvb_cache_bind(&c, NULL), KVB_BAD_ARGUMENT, "memory");
}

/* What has its place in the structs and no kernels yet: K and V that differ, V inside K, several
 * queries, sinks. */
static void check_what_is_to_come(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    kvb_cache changed, c;
#define TO_COME(field, name, ...) \
    WRONG(good_shape(), field, kvb_cache_plan(&changed), KVB_UNSUPPORTED, name, __VA_ARGS__)
    TO_COME(k.dtype, "k.dtype is q4_0", word_of("dtype", "q4_0"));
    TO_COME(v.dtype, "v.dtype is f16", word_of("dtype", "f16"));
    TO_COME(k.scale, "k.scale is f16", 1);
    TO_COME(v.scale, "v.scale is f16", 1);
    TO_COME(v_in_k, "v_in_k", 1);
    TO_COME(v_offset, "v_offset", 64, -64);
    TO_COME(v_dim, "v_dim", 16, -24);
    expect(!changed.bytes, "a refused cache was planned");
    c = good_shape();
    c.v_dim = c.head_dim;
    expect(!kvb_cache_plan(&c), "v_dim that is head_dim: %s", kvb_message());
    const int64_t ends[] = {3, 12};
    kvb_decode a = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4, .q_len = 2};
    const kvb_decode decodes[] = {
        a,
        {.cache = &r->cache, .q = q, .out = out, .q_heads = 4, .ends = ends},
        {.cache = &r->cache, .q = q, .out = out, .q_heads = 4, .sink = q}};
    static const char *const names[] = {"q_len", "ends", "sink"};
    for (int i = 0; i < 3; i++) {
        refused(kvb_task_decode(&decodes[i], 1, &task), KVB_UNSUPPORTED, names[i]);
        refused(kvb_task_twin(&decodes[i], 1, &task), KVB_UNSUPPORTED, names[i]);
        refused(kvb_task_fill(&decodes[i], 1, 1, &task), KVB_UNSUPPORTED, names[i]);
    }
    a.q_len = -1;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "q_len");
    a.q_len = 1;
    expect(!kvb_task_decode(&a, 1, &task), "one query: %s", kvb_message());
    kvb_task_free(task);
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
    refused(kvb_task_decode(&good, 0, &task), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_task_decode(&good, -1, &task), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_task_decode(&good, 1 << 30, &task), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_task_decode(NULL, 1, &task), KVB_BAD_ARGUMENT, "decode");
    refused(kvb_task_decode(&good, 1, NULL), KVB_BAD_ARGUMENT, "task");
    const int32_t kept = r->table[0];
    changed = good;
    /* not attended, but inside the wrap */
    r->lengths[0] = 12, changed.window = 1, changed.wrap = 12, r->table[0] = -1;
    refused(kvb_task_decode(&changed, 1, &task), KVB_BAD_ARGUMENT, "table");
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
    BAD_STORE(tokens, "tokens", 0, -1, 38, INT64_MAX); /* to one that has 3 of 40 */
    BAD_STORE(head_major, "head_major", 2);
    BAD_STORE(nt, "nt", -1);
    BAD_STORE(advance, "advance", 7);
    BAD_STORE(isa, "isa", 99);
    refused(kvb_task_bulk(NULL, 1, &task), KVB_BAD_ARGUMENT, "store");
    refused(kvb_task_bulk(&good, 1 << 30, &task), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_task_unpack(NULL, 0, 1, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "cache");
    refused(kvb_task_unpack(&r->cache, 0, 1, NULL, k, 0, 1, &task), KVB_BAD_ARGUMENT, "k");
    refused(kvb_task_unpack(&r->cache, -1, 1, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "first");
    refused(kvb_task_unpack(&r->cache, 0, 41, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "tokens");
    refused(kvb_task_clear(NULL, 0, 1, &task), KVB_BAD_ARGUMENT, "cache");
    refused(kvb_reset(NULL), KVB_BAD_ARGUMENT, "cache");
}

/* Of a read without steps, and of whole lines. */
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
    refused(kvb_team_open(NULL, 0, &team), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_team_open(NULL, 1, NULL), KVB_BAD_ARGUMENT, "team");
    refused(kvb_arena_open(0, 0, 0, &arena), KVB_BAD_ARGUMENT, "bytes");
    refused(kvb_arena_open(64, 99, 0, &arena), KVB_BAD_ARGUMENT, "pages");
    refused(kvb_arena_open(64, 0, 3, &arena), KVB_BAD_ARGUMENT, "guard");
    refused(kvb_arena_open(64, 0, 0, NULL), KVB_BAD_ARGUMENT, "arena");
    kvb_probe probe = {.op = word_of("op", "decode"), .a = x, .bytes = 64};
    refused(kvb_task_probe(&probe, 1, &task), KVB_BAD_ARGUMENT, "op");
    probe.op = word_of("op", "read"), probe.bytes = 63;
    refused(kvb_task_probe(&probe, 1, &task), KVB_BAD_ARGUMENT, "bytes");
    probe.bytes = 64, probe.a = NULL;
    refused(kvb_task_probe(&probe, 1, &task), KVB_BAD_ARGUMENT, "a");
    refused(kvb_task_probe(NULL, 1, &task), KVB_BAD_ARGUMENT, "probe");
    check_pieces(x);
    refused(kvb_chain(NULL, 64, 1), KVB_BAD_ARGUMENT, "buffer");
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
    check_what_is_to_come(&r, q, out);
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
