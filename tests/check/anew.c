/* Tasks whose memory has changed since they were planned: a cache has another shape, a chain was
 * overwritten. A run refuses them before its first pass, or stays inside the memory. */
#include <stdlib.h>

#include "runs.h"

/* Plan a cache again, with a shape that is larger by `more`. No task from before fits other rows of
 * K or V. */
static void check_other_shape(kvb_cache more)
{
    enum { TASKS = 6 };
    static const char *const names[TASKS] = {"decode", "twin", "fill", "bulk", "unpack", "clear"};
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[DIM];
    int64_t lengths[2] = {2, 2};
    r.cache.lengths = lengths;
    kvb_decode args = {.cache = &r.cache, .q = source, .out = out, .q_heads = 1, .isa = tiers[0]};
    kvb_task *tasks[TASKS] = {NULL, NULL, NULL, store_of(&r.cache, 1, 0)};
    expect(!kvb_task_decode(&args, 1, &tasks[0]) && !kvb_task_twin(&args, 1, &tasks[1]) &&
               !kvb_task_fill(&args, 1, 1, &tasks[2]) &&
               !kvb_task_clear(&r.cache, tiers[0], 1, &tasks[5]) &&
               !kvb_task_unpack(&r.cache, 0, 1, out, out, tiers[0], 1, &tasks[4]),
           "tasks: %s", kvb_message());
    kvb_cache *c = &r.cache;
    c->layout += more.layout, c->inner += more.inner;
    c->k.dtype += more.k.dtype, c->k.scale += more.k.scale;
    c->v.dtype += more.v.dtype, c->v.scale += more.v.scale, c->v_dim += more.v_dim;
    c->ring += more.ring, c->batch += more.batch, c->kv_heads += more.kv_heads,
        c->head_dim += more.head_dim;
    c->capacity += more.capacity;
    expect(!kvb_cache_plan(c), "plan: %s", kvb_message());
    uint8_t *memory = need((size_t)c->bytes + 64);
    kvb_cache_bind(c, memory + (64 - (uintptr_t)memory % 64));
    for (int t = 0; t < TASKS; t++) {
        int32_t code = run(&tasks[t], 1, 1, NULL);
        if (more.capacity)
            expect(!code, "%s with a larger capacity: %s", names[t], kvb_message());
        else
            refused(code, "cache", names[t]);
        kvb_task_free(tasks[t]);
    }
    rig_close(&r);
    free(memory);
}

/* If a ring of another capacity ends inside a tile, there is one tile more than the task has room
 * for. */
static void check_other_ring(void)
{
    enum { WINDOW = 1024 };
    rig r;
    kvb_cache shape = {.layout = word_of("layout", "blockt"),
                       .ring = 1,
                       .batch = 1,
                       .kv_heads = 1,
                       .head_dim = DIM,
                       .capacity = 3 * WINDOW};
    if (!rig_open(&r, shape, 0))
        return;
    float out[DIM];
    kvb_task *task = NULL;
    kvb_decode args = {.cache = &r.cache,
                       .q = source,
                       .out = out,
                       .q_heads = 1,
                       .window = WINDOW,
                       .isa = tiers[0],
                       .variant = word_of("variant", "twopass")};
    r.lengths[0] = 3 * WINDOW;
    expect(!kvb_task_decode(&args, 1, &task) && !run(&task, 1, 1, NULL), "a window of a ring: %s",
           kvb_message());
    r.cache.capacity = 2 * WINDOW + DIM;
    expect(!kvb_cache_plan(&r.cache) && !kvb_cache_bind(&r.cache, r.arena.base), "plan: %s",
           kvb_message());
    refused(run(&task, 1, 1, NULL), "capacity", "a window around a ring's end");
    kvb_task_free(task);
    rig_close(&r);
}

/* Return a decode of two queries of the first sequence, which has six tokens. */
static kvb_decode of_two(rig *r, float *out)
{
    r->lengths[0] = 6;
    return (kvb_decode){
        .cache = &r->cache, .q = source, .out = out, .q_heads = 1, .q_len = 2, .isa = tiers[0]};
}

/* The caller may change the ends of queries; a task is planned for the ends of that time. */
static void check_other_ends(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[2 * DIM];
    int64_t ends[2] = {3, 5};
    kvb_task *task = NULL;
    kvb_decode args = of_two(&r, out);
    args.ends = ends;
    expect(!kvb_task_decode(&args, 1, &task) && !run(&task, 1, 1, NULL), "two queries: %s",
           kvb_message());
    static const int64_t others[] = {4, -1, 7};
    for (int i = 0; i < 3; i++) {
        kvb_task *other = NULL;
        ends[0] = others[i];
        refused(run(&task, 1, 1, NULL), i ? "; its sequence has" : "lengths changed",
                "another end");
        if (i)
            refused(kvb_task_decode(&args, 1, &other), "; its sequence has", "an end outside");
    }
    ends[0] = 3;
    expect(!run(&task, 1, 1, NULL), "the ends of before: %s", kvb_message());
    kvb_task_free(task);
    rig_close(&r);
}

/* In a tree, the words decide where a window begins. */
static void check_other_tree(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[2 * DIM];
    uint32_t tree[2] = {1, 3};
    kvb_task *task = NULL;
    kvb_decode args = of_two(&r, out);
    args.mask = KVB_MASK_TREE;
    args.tree = tree;
    args.window = 2;
    expect(!kvb_task_decode(&args, 1, &task) && !run(&task, 1, 1, NULL), "a tree: %s",
           kvb_message());
    tree[1] = 2;
    refused(run(&task, 1, 1, NULL), "or ends or tree", "another tree");
    tree[1] = 3;
    expect(!run(&task, 1, 1, NULL), "the tree of before: %s", kvb_message());
    kvb_task_free(task);
    rig_close(&r);
}

static void check_planned_anew(void)
{
    static const kvb_cache more[] = {{.batch = 1},  {.kv_heads = 1}, {.head_dim = DIM},
                                     {.layout = 1}, {.k.dtype = 1},  {.k.scale = 1},
                                     {.v_dim = 8},  {.v.dtype = 1},  {.v.scale = 1},
                                     {.inner = 1},  {.ring = 1},     {.capacity = 5}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        check_other_shape(more[i]);
    check_other_ring();
    check_other_ends();
    check_other_tree();
}

/* A chain that was overwritten, in part or completely: no walk leaves the buffer. */
static void check_latency(void)
{
    enum { LINES = 64, WORDS = 64 / sizeof(void *) };
    void **chain = need(2 * LINES * 64),
         **first = chain + (64 - (uintptr_t)chain % 64) / sizeof *chain;
    kvb_probe args = {.op = word_of("op", "latency"), .a = first, .bytes = LINES * 64, .steps = 1};
    kvb_task *task = NULL;
    expect(!kvb_chain(first, LINES * 64, 1) && !kvb_task_probe(&args, 1, &task), "a chain: %s",
           kvb_message());
    expect(!run(&task, 1, 3 * LINES, NULL), "three times around: %s", kvb_message());
    void *kept = first[WORDS];
    first[WORDS] = first + LINES * WORDS; /* one line too far */
    expect(!run(&task, 1, 2 * LINES, NULL), "to the line that leads out: %s", kvb_message());
    refused(run(&task, 1, 1, NULL), "chain", "behind the line that leads out");
    kvb_task_free(task);
    first[WORDS] = kept;
    expect(!kvb_task_probe(&args, 1, &task), "a chain again: %s", kvb_message());
    memset(first, 0x5a, LINES * 64);
    refused(run(&task, 1, 1, NULL), "chain", "a chain that is written over");
    kvb_task_free(task);
    free(chain);
}

void check_anew(void)
{
    noise(source, CAPACITY * DIM, 32);
    check_planned_anew();
    check_latency();
}
