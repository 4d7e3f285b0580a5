/* Series: tasks that cannot be in one, the order of its tasks, and what a run refuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"

enum { CPU_THREADS = 3, LONG = 700, HEADS = 2 };

static void wrong(int32_t code, const char *words)
{
    expect(code == KVB_BAD_ARGUMENT && !strcmp(kvb_message(), words), "code %d, message \"%s\"",
           code, code ? kvb_message() : "");
}

static kvb_task *read_of(int32_t threads)
{
    static _Alignas(64) uint8_t lines[640];
    kvb_probe args = {
        .op = word_of("op", "read"), .isa = tiers[0], .a = lines, .bytes = sizeof lines};
    kvb_task *task = NULL;
    expect(!kvb_task_probe(&args, threads, &task), "read: %s", kvb_message());
    return task;
}

static kvb_task *decode_of(kvb_cache *cache, float *out, int32_t stages)
{
    kvb_decode args = {
        .cache = cache, .q = source, .out = out, .q_heads = 1, .isa = tiers[0], .stages = stages};
    kvb_task *task = NULL;
    expect(!kvb_task_decode(&args, 1, &task), "decode: %s", kvb_message());
    return task;
}

static kvb_task *series_of(kvb_task *first, kvb_task *second, int32_t threads)
{
    kvb_task *const both[] = {first, second}, *series = NULL;
    const int32_t kinds[] = {0, 1};
    expect(!kvb_task_series(both, kinds, 2, threads, &series), "series: %s", kvb_message());
    return series;
}

/* Each wrong part has its message, and no task is returned. */
static void check_parts(kvb_task *good, kvb_task *other, kvb_task *adds, kvb_task *stages)
{
    kvb_task *const untouched = good, *series = untouched, *tasks[2] = {good, good};
    int32_t kinds[2] = {0, 2};
#define SERIES(count, threads) kvb_task_series(tasks, kinds, count, threads, &series)
    wrong(kvb_task_series(NULL, kinds, 2, 1, &series), "tasks is null");
    wrong(kvb_task_series(tasks, NULL, 2, 1, &series), "kinds is null");
    wrong(kvb_task_series(tasks, kinds, 2, 1, NULL), "task is null");
    wrong(SERIES(0, 1), "count is 0; allowed is 1 to 2147483647");
    wrong(SERIES(-1, 1), "count is -1; allowed is 1 to 2147483647");
    wrong(SERIES(2, 0), "threads is 0; allowed is 1 to 1024");
    wrong(SERIES(2, 2), "tasks[0] is planned for 1 threads, the series for 2");
    kinds[1] = 3;
    wrong(SERIES(2, 1), "the kind of tasks[1] is 3; allowed is 0 to 2");
    kinds[1] = -1;
    wrong(SERIES(2, 1), "the kind of tasks[1] is -1; allowed is 0 to 2");
    kinds[1] = 2, tasks[1] = NULL;
    wrong(SERIES(2, 1), "tasks[1] is null");
    tasks[1] = other;
    wrong(SERIES(2, 1), "tasks[1] is planned for 3 threads, the series for 1");
    tasks[1] = adds;
    wrong(SERIES(2, 1), "tasks[1] adds tokens; a series cannot contain it");
    tasks[1] = stages;
    wrong(SERIES(2, 1), "tasks[1] counts stages; a series cannot contain it");
    tasks[1] = series_of(good, good, 1);
    wrong(SERIES(2, 1), "tasks[1] is a series; a series cannot contain it");
    kvb_task_free(tasks[1]);
    expect(series == untouched, "a refused series was handed out");
}

/* Runs that cannot have a series; a series has no sum. */
static void check_places(kvb_task *good, kvb_task *stages)
{
    uint32_t sum = 7;
    kvb_task *series = series_of(good, good, 1), *const mixed[] = {stages, series};
    wrong(run(&good, 1, 1, series), "between is a series; it must be a single task");
    wrong(run(mixed, 2, 2, NULL),
          "tasks: a series and a task that counts stages cannot run together");
    wrong(run_tasks(&series, 1, 1, NULL, 2),
          "tasks[0] is planned for 1 threads, but the team has 2");
    expect(!run(&series, 1, 3, good), "a read before each series: %s", kvb_message());
    expect(kvb_task_sum(series, &sum) == KVB_UNSUPPORTED && sum == 7, "a series has a sum: %u",
           sum);
    kvb_task_free(series);
}

static void check_refusals(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[DIM];
    r.lengths[0] = 3;
    kvb_task *good = read_of(1), *other = read_of(CPU_THREADS), *adds = store_of(&r.cache, 1, 1),
             *stages = decode_of(&r.cache, out, 1);
    check_parts(good, other, adds, stages);
    check_places(good, stages);
    kvb_task_free(good);
    kvb_task_free(other);
    kvb_task_free(adds);
    kvb_task_free(stages);
    rig_close(&r);
}

/* What a run refuses before its first pass. No part has done anything then. */
static void check_ready(void)
{
    rig r;
    if (!open_rig(&r, "paged"))
        return;
    float out[DIM];
    int64_t behind = 1;
    kvb_cache before = r.cache; /* the same rows, but its own length */
    before.lengths = &behind;
    r.lengths[0] = 2;
    memset(r.arena.base, 0x5a, (size_t)r.cache.bytes);
    kvb_task *store = store_of(&before, 1, 0), *decode = decode_of(&r.cache, out, 0),
             *series = series_of(store, decode, 1),
             *grows = store_of(&r.cache, 1, 1), *const beside[] = {grows, series};
    r.lengths[0] = 3;
    refused(run(&series, 1, 1, NULL), "lengths changed", "a part of other lengths");
    r.lengths[0] = 2;
    refused(run(beside, 2, 2, NULL), "lengths grow by 1", "a part behind a store that advances");
    behind = CAPACITY;
    refused(run(&series, 1, 1, NULL), "tokens", "a part of a full cache");
    behind = 1, r.table[0] = 1 << 20;
    refused(run(&series, 1, 1, NULL), "table", "a part over another table");
    r.table[0] = 0, before.head_dim += 1;
    refused(run(&series, 1, 1, NULL), "cache", "a part whose cache was planned anew");
    before.head_dim -= 1;
    for (int64_t i = 0; i < r.cache.bytes; i++)
        if (!expect(r.arena.base[i] == 0x5a, "a refused series wrote byte %ld", (long)i))
            break;
    expect(!run(&series, 1, 2, NULL) && behind == 1 && r.lengths[0] == 2, "series: %s",
           kvb_message());
    kvb_task_free(series); /* its parts are still usable */
    expect(!run(&decode, 1, 1, NULL) && !run(&store, 1, 1, NULL), "parts: %s", kvb_message());
    kvb_task_free(decode);
    kvb_task_free(store);
    kvb_task_free(grows);
    rig_close(&r);
}

static int left; /* units until the plug-in breaks a rule */

static void writes_beside(const kvb_work *work)
{
    work->max[0] = work->sum[0] = 0.0f;
    memset(work->acc, 0, DIM * sizeof *work->acc);
    if (left-- == 0)
        work->acc[-1] += 1.0f;
}

static void check_fault(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[DIM];
    r.lengths[0] = 4;
    kvb_decode args = {.cache = &r.cache,
                       .q = source,
                       .out = out,
                       .q_heads = 1,
                       .isa = tiers[0],
                       .run = writes_beside};
    kvb_task *foreign = NULL, *read = read_of(1);
    expect(!kvb_task_decode(&args, 1, &foreign), "plug-in: %s", kvb_message());
    kvb_task *series = series_of(read, foreign, 1);
    left = 5;
    expect(!run(&series, 1, 5, NULL), "a plug-in's good units: %s", kvb_message());
    expect(run(&series, 1, 2, NULL) == KVB_FOREIGN && strstr(kvb_message(), "plug-in wrote beside"),
           "a plug-in's fault in a series: %s", kvb_message());
    kvb_task_free(series);
    kvb_task_free(foreign);
    kvb_task_free(read);
    rig_close(&r);
}

/* A series of five layers: a store of the last token, then a decode, for each. A thread that is
 * late would read what an earlier part has left. */
static void check_layout(int32_t layout, int32_t threads)
{
    enum { LAYERS = 5, COUNT = 2 * HEADS * DIM };
    static float rows[LAYERS][LONG * HEADS * DIM], out[LAYERS][COUNT], right[COUNT];
    rig r[LAYERS];
    const bool floats = kvb_reads(0, layout, 0, KVB_K) >= 0; /* else only codes */
    kvb_cache before[LAYERS], shape = {.layout = layout,
                                       PLANES(floats ? 0 : word_of("dtype", "q8_0"), 0),
                                       .batch = 1,
                                       .kv_heads = HEADS,
                                       .head_dim = DIM,
                                       .capacity = LONG,
                                       .block_tokens = 16,
                                       .blocks = LONG / 16 + 1};
    int64_t shorter = LONG - 1;
    kvb_task *tasks[2 * LAYERS], *series = NULL;
    int32_t kinds[2 * LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        noise(rows[i], LONG * HEADS * DIM, (uint64_t)(40 + i));
        rig_open(&r[i], shape, 1);
        before[i] = r[i].cache, before[i].lengths = &shorter;
        kvb_store put = {
            .cache = &r[i].cache, .k = rows[i], .v = rows[i], .tokens = LONG - 1, .isa = tiers[0]};
        kvb_store last = put;
        last.cache = &before[i], last.tokens = 1;
        last.k = last.v = rows[i] + (LONG - 1) * HEADS * DIM;
        kvb_decode args = {.cache = &r[i].cache,
                           .q = rows[0],
                           .out = out[i],
                           .q_heads = 2 * HEADS,
                           .isa = tiers[0]};
        expect(!run_bulk(&put, 1), "bulk: %s", kvb_message());
        r[i].lengths[0] = LONG;
        expect(!kvb_task_append(&last, threads, &tasks[2 * i]) &&
                   !kvb_task_decode(&args, threads, &tasks[2 * i + 1]),
               "tasks: %s", kvb_message());
        kinds[2 * i] = 2, kinds[2 * i + 1] = 0;
    }
    expect(!kvb_task_series(tasks, kinds, 2 * LAYERS, threads, &series), "series: %s",
           kvb_message());
    expect(!run_tasks(&series, 1, 1, NULL, threads), "run: %s", kvb_message());
    for (int i = 0; i < LAYERS; i++) {
        kvb_decode plain = {.cache = &r[i].cache,
                            .q = rows[0],
                            .out = right,
                            .q_heads = 2 * HEADS,
                            .isa = word_of("isa", "scalar")};
        expect(!run_decode(&plain, 1), "decode: %s", kvb_message());
        expect(apart(out[i], right, COUNT) <= 2e-6 * 1.75, "%s, layer %d on %d threads: error %.3g",
               kvb_word("layout", layout), i, threads, apart(out[i], right, COUNT));
    }
    kvb_task_free(series);
    for (int i = 0; i < LAYERS; i++) {
        kvb_task_free(tasks[2 * i]);
        kvb_task_free(tasks[2 * i + 1]);
        rig_close(&r[i]);
    }
}

void check_series(void)
{
    noise(source, CAPACITY * DIM, 33);
    check_refusals();
    check_ready();
    check_fault();
    for (int32_t layout = 0; kvb_word("layout", layout); layout++)
        for (int32_t threads = 1; threads <= 7; threads += 2)
            check_layout(layout, threads);
}
