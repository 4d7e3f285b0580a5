/* Wrong arguments: a code, a message that names the argument, and not a byte written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void refused(int32_t code, int32_t right, const char *name)
{
    expect(code == right && strstr(kvb_message(), name), "bad %s: code %d, message \"%s\"", name, code,
           code ? kvb_message() : "");
}

static kvb_cache good_shape(void)
{
    return (kvb_cache){.layout = word_of("layout", "paged"), .batch = 2, .kv_heads = 2, .head_dim = 24, .capacity = 40,
                       .block_tokens = 8, .blocks = 10};
}

static void check_shapes(void)
{
    kvb_cache c;
#define BAD_SHAPE(field, value, name)                               \
    do {                                                            \
        c = good_shape();                                           \
        c.field = value;                                            \
        refused(kvb_cache_plan(&c), KVB_BAD_ARGUMENT, name);        \
    } while (0)
    BAD_SHAPE(layout, 99, "layout");
    BAD_SHAPE(layout, -1, "layout");
    BAD_SHAPE(inner, 9, "inner");
    BAD_SHAPE(k.dtype, 99, "dtype");
    BAD_SHAPE(v.dtype, -1, "dtype");
    BAD_SHAPE(k.scale, 9, "scale");
    BAD_SHAPE(v.scale, 9, "scale");
    BAD_SHAPE(k.reserved, 1, "reserved");
    BAD_SHAPE(v.reserved, -1, "reserved");
    BAD_SHAPE(v_in_k, 2, "v_in_k");
    BAD_SHAPE(ring, 2, "ring");
    BAD_SHAPE(batch, 0, "batch");
    BAD_SHAPE(batch, -1, "batch");
    BAD_SHAPE(kv_heads, 0, "kv_heads");
    BAD_SHAPE(kv_heads, -3, "kv_heads");
    BAD_SHAPE(head_dim, 0, "head_dim");
    BAD_SHAPE(head_dim, -8, "head_dim");
    BAD_SHAPE(capacity, 0, "capacity");
    BAD_SHAPE(capacity, -1, "capacity");
    BAD_SHAPE(capacity, INT64_MAX, "capacity");
    BAD_SHAPE(block_tokens, 0, "block_tokens");
    BAD_SHAPE(block_tokens, -16, "block_tokens");
    BAD_SHAPE(blocks, 0, "blocks");
    BAD_SHAPE(pad, -64, "pad");
    BAD_SHAPE(pad, 63, "pad");
    BAD_SHAPE(k.tensor, 2.0f, "k.tensor"); /* of f32 */
    BAD_SHAPE(v.tensor, 2.0f, "v.tensor");
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

/* What has its place in the structs and no kernels yet: K and V that differ, V inside K, several queries, sinks. */
static void check_what_is_to_come(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    kvb_cache c;
#define TO_COME(field, value, name)                                 \
    do {                                                            \
        c = good_shape();                                           \
        c.field = value;                                            \
        refused(kvb_cache_plan(&c), KVB_UNSUPPORTED, name);         \
        expect(!c.bytes, "a refused cache was planned");            \
    } while (0)
    TO_COME(k.dtype, word_of("dtype", "q4_0"), "k.dtype is q4_0");
    TO_COME(v.dtype, word_of("dtype", "f16"), "v.dtype is f16");
    TO_COME(k.scale, 1, "k.scale is f16");
    TO_COME(v.scale, 1, "v.scale is f16");
    TO_COME(v_in_k, 1, "v_in_k");
    TO_COME(v_offset, 64, "v_offset");
    TO_COME(v_offset, -64, "v_offset");
    TO_COME(v_dim, 16, "v_dim is 16");
    TO_COME(v_dim, -24, "v_dim");
    c = good_shape();
    c.v_dim = c.head_dim;
    expect(!kvb_cache_plan(&c), "v_dim that is head_dim: %s", kvb_message());
    const int64_t ends[] = {3, 12};
    kvb_decode a = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4, .q_len = 2};
    const kvb_decode decodes[] = {a, {.cache = &r->cache, .q = q, .out = out, .q_heads = 4, .ends = ends},
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
    kvb_decode a;
    const kvb_decode good = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4};
#define BAD_DECODE(field, value, code, name)                        \
    do {                                                            \
        a = good;                                                   \
        a.field = value;                                            \
        refused(kvb_task_decode(&a, 1, &task), code, name);         \
        refused(kvb_task_twin(&a, 1, &task), code, name);           \
    } while (0)
    BAD_DECODE(cache, NULL, KVB_BAD_ARGUMENT, "cache");
    BAD_DECODE(q, NULL, KVB_BAD_ARGUMENT, "q");
    BAD_DECODE(out, NULL, KVB_BAD_ARGUMENT, "out");
    BAD_DECODE(q_heads, 0, KVB_BAD_ARGUMENT, "q_heads");
    BAD_DECODE(q_heads, -2, KVB_BAD_ARGUMENT, "q_heads");
    BAD_DECODE(q_heads, 3, KVB_BAD_ARGUMENT, "q_heads");
    BAD_DECODE(window, -1, KVB_BAD_ARGUMENT, "window");
    BAD_DECODE(variant, 99, KVB_BAD_ARGUMENT, "variant");
    BAD_DECODE(schedule, 99, KVB_BAD_ARGUMENT, "schedule");
    BAD_DECODE(wrap, -1, KVB_BAD_ARGUMENT, "wrap");
    BAD_DECODE(wrap, 1 << 20, KVB_BAD_ARGUMENT, "wrap");
    BAD_DECODE(isa, 99, KVB_BAD_ARGUMENT, "isa");
    BAD_DECODE(isa, -1, KVB_BAD_ARGUMENT, "isa");
    BAD_DECODE(scale, -1.0f, KVB_BAD_ARGUMENT, "scale");
    BAD_DECODE(scale, INFINITY, KVB_BAD_ARGUMENT, "scale");
    BAD_DECODE(scale, NAN, KVB_BAD_ARGUMENT, "scale");
    a = good;
    refused(kvb_task_decode(&a, 0, &task), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_task_decode(&a, -1, &task), KVB_BAD_ARGUMENT, "threads");
    refused(kvb_task_decode(NULL, 1, &task), KVB_BAD_ARGUMENT, "decode");
    refused(kvb_task_decode(&a, 1, NULL), KVB_BAD_ARGUMENT, "task");
}

/* What the cache's owner keeps beside it: lengths and table. */
static void check_lengths_and_table(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    kvb_decode a = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4};
    r->lengths[1] = r->cache.capacity + 1;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "lengths");
    r->lengths[1] = -1;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "lengths");
    r->lengths[1] = 12;
    static const int32_t wrong[] = {10, INT32_MAX, -1, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        int32_t kept = r->table[r->cache.table_stride + 1];
        r->table[r->cache.table_stride + 1] = wrong[i];
        refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "table");
        r->table[r->cache.table_stride + 1] = kept;
    }
    int32_t kept = r->table[0]; /* not attended, but inside the wrap */
    r->lengths[0] = 12, a.window = 1, a.wrap = 12, r->table[0] = -1;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "table");
    r->lengths[0] = 3, a.window = 0, a.wrap = 0, r->table[0] = kept;
}

static void check_half_made_caches(rig *r, float *q, float *out)
{
    kvb_task *task = NULL;
    kvb_decode a = {.cache = &r->cache, .q = q, .out = out, .q_heads = 4};
    kvb_cache none = r->cache;
    a.cache = &none;
    none.table = NULL;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "table");
    none = r->cache;
    none.lengths = NULL;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "lengths");
    none = r->cache;
    none.k.rows = NULL;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "cache");
    none = r->cache;
    none.head_dim = 64;
    refused(kvb_task_decode(&a, 1, &task), KVB_BAD_ARGUMENT, "cache");
}

static void check_stores(rig *r, float *k)
{
    kvb_task *task = NULL;
    kvb_store a;
    const kvb_store good = {.cache = &r->cache, .k = k, .v = k, .tokens = 1};
#define BAD_STORE(field, value, name)                                       \
    do {                                                                    \
        a = good;                                                           \
        a.field = value;                                                    \
        refused(kvb_task_append(&a, 1, &task), KVB_BAD_ARGUMENT, name);     \
        refused(kvb_task_bulk(&a, 1, &task), KVB_BAD_ARGUMENT, name);       \
    } while (0)
    BAD_STORE(cache, NULL, "cache");
    BAD_STORE(k, NULL, "k");
    BAD_STORE(v, NULL, "v");
    BAD_STORE(tokens, 0, "tokens");
    BAD_STORE(tokens, -1, "tokens");
    BAD_STORE(tokens, 41, "tokens");
    BAD_STORE(tokens, INT64_MAX, "tokens");
    BAD_STORE(head_major, 2, "head_major");
    BAD_STORE(nt, -1, "nt");
    BAD_STORE(advance, 7, "advance");
    BAD_STORE(isa, 99, "isa");
    a = good;
    r->lengths[0] = r->cache.capacity;
    refused(kvb_task_append(&a, 1, &task), KVB_BAD_ARGUMENT, "tokens");
    r->lengths[0] = 3;
    a.tokens = 2;
    refused(kvb_task_append(&a, 1, &task), KVB_BAD_ARGUMENT, "tokens");
    refused(kvb_task_bulk(NULL, 1, &task), KVB_BAD_ARGUMENT, "store");
    refused(kvb_task_unpack(NULL, 0, 1, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "cache");
    refused(kvb_task_unpack(&r->cache, 0, 1, NULL, k, 0, 1, &task), KVB_BAD_ARGUMENT, "k");
    refused(kvb_task_unpack(&r->cache, -1, 1, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "first");
    refused(kvb_task_unpack(&r->cache, 0, 41, k, k, 0, 1, &task), KVB_BAD_ARGUMENT, "tokens");
    refused(kvb_task_clear(NULL, 0, 1, &task), KVB_BAD_ARGUMENT, "cache");
    refused(kvb_reset(NULL), KVB_BAD_ARGUMENT, "cache");
}

static void check_rest(float *x)
{
    kvb_task *task = NULL;
    kvb_team *team = NULL;
    kvb_arena arena;
    refused(kvb_transpose(NULL, x, 1, 1, 1, 1), KVB_BAD_ARGUMENT, "from");
    refused(kvb_transpose(x, NULL, 1, 1, 1, 1), KVB_BAD_ARGUMENT, "to");
    refused(kvb_transpose(x, x + 8, 0, 1, 1, 1), KVB_BAD_ARGUMENT, "rows");
    refused(kvb_transpose(x, x + 8, 1, -1, 1, 1), KVB_BAD_ARGUMENT, "heads");
    refused(kvb_transpose(x, x + 8, 1, 1, 0, 1), KVB_BAD_ARGUMENT, "dim");
    refused(kvb_logits(NULL, x, 0, 1, 1), KVB_BAD_ARGUMENT, "row");
    refused(kvb_logits(x, NULL, 0, 1, 1), KVB_BAD_ARGUMENT, "matrix");
    refused(kvb_logits(x, x, 1, 1, 1), KVB_BAD_ARGUMENT, "position");
    refused(kvb_logits(x, x, -1, 1, 1), KVB_BAD_ARGUMENT, "position");
    refused(kvb_logits(x, x, 0, 1, 0), KVB_BAD_ARGUMENT, "width");
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
    refused(kvb_chain(NULL, 64, 1), KVB_BAD_ARGUMENT, "buffer");
}

static void check_repack(void)
{
    rig r;
    kvb_cache shape = good_shape();
    shape.layout = word_of("layout", "head");
    if (!rig_open(&r, shape, 0))
        return;
    kvb_cache smaller = r.cache, other = r.cache;
    smaller.capacity = 8;
    kvb_cache_plan(&smaller);
    refused(kvb_repack(&r.cache, &smaller), KVB_BAD_ARGUMENT, "capacity");
    other.head_dim = 8;
    kvb_cache_plan(&other);
    refused(kvb_repack(&r.cache, &other), KVB_BAD_ARGUMENT, "head_dim");
    refused(kvb_repack(NULL, &r.cache), KVB_BAD_ARGUMENT, "cache");
    refused(kvb_repack(&r.cache, NULL), KVB_BAD_ARGUMENT, "cache");
    rig_close(&r);
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
    check_lengths_and_table(&r, q, out);
    check_half_made_caches(&r, q, out);
    check_stores(&r, q);
    check_rest(q);
    check_repack();
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
