/* Emptying a cache: clear zeros its bytes, reset sets its lengths to zero. */
#include <string.h>

#include "store/store.h"

typedef struct clear_task {
    kvb_task task;
    const kvb_cache *cache;
    const kvb_tier *tier;
} clear_task;

/* Zero a thread's share of a plane. It is encoded as float32 rows of zeros, so that the tier's
 * stores are used. */
static void clear_share(const clear_task *task, uint8_t *plane, int64_t bytes, int32_t thread)
{
    static const float zeros[DIM_MAX];
    const int64_t lines = bytes / LINE, end = lines * (thread + 1) / task->task.threads * LINE;
    for (int64_t at = lines * thread / task->task.threads * LINE, row; at < end; at += row) {
        row = at_most((int64_t)sizeof zeros, end - at);
        kvb_encode run = {
            .to = plane + at, .from = zeros, .count = 1, .dim = row / 4, .row_bytes = row};
        task->tier->codecs[DTYPE_F32].encode(&run);
    }
}

static void clear(kvb_task *base, int32_t thread, void *scratch)
{
    const clear_task *task = (const clear_task *)base;
    const kvb_cache *c = task->cache;
    (void)scratch;
    clear_share(task, c->k.rows, c->k.bytes, thread);
    clear_share(task, c->v.rows, c->v.bytes, thread);
    clear_share(task, c->k.scales, c->k.scale_bytes, thread);
    clear_share(task, c->v.scales, c->v.scale_bytes, thread);
}

int32_t kvb_task_clear(const kvb_cache *cache, int32_t isa, int32_t threads, kvb_task **out)
{
    TRY(kvb_check_cache(cache));
    TRY(kvb_check_isa(isa));
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_given("task", out));
    clear_task *task = kvb_task_new(sizeof *task, cache, threads);
    if (!task)
        return KVB_NO_MEMORY;
    task->cache = cache;
    task->tier = kvb_tier_of(isa);
    task->task.work = clear;
    double bytes = (double)cache->bytes;
    task->task.traffic = (kvb_traffic){.compulsory = bytes, .issued = bytes, .line = bytes};
    *out = &task->task;
    return KVB_OK;
}

int32_t kvb_reset(kvb_cache *cache)
{
    TRY(kvb_check_cache(cache));
    memset(cache->lengths, 0, (size_t)cache->batch * sizeof *cache->lengths);
    return KVB_OK;
}
