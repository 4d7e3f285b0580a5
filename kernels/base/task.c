/* What every task has in common. */
#include <stdlib.h>
#include <string.h>

#include "base/task.h"

void *kvb_task_new(size_t bytes, const kvb_cache *cache, int32_t threads)
{
    kvb_task *task = calloc(1, bytes);
    if (!task) {
        kvb_fail(KVB_NO_MEMORY, "no memory for a task of %zu bytes", bytes);
        return NULL;
    }
    task->threads = threads;
    task->cache = cache;
    if (cache)
        task->shape = *cache;
    return task;
}

void kvb_task_free(kvb_task *task)
{
    if (!task)
        return;
    if (task->dispose)
        task->dispose(task);
    free(task->sums);
    free(task);
}

int32_t kvb_task_sums(kvb_task *task)
{
    const size_t bytes = (size_t)task->threads * sizeof *task->sums;
    task->sums = aligned_alloc(_Alignof(kvb_sum), bytes);
    if (!task->sums)
        return kvb_fail(KVB_NO_MEMORY, "no memory for the sums of %d threads", task->threads);
    memset(task->sums, 0, bytes);
    return KVB_OK;
}

int32_t kvb_task_made(kvb_task *task, int32_t code, kvb_task **out)
{
    if (code)
        kvb_task_free(task);
    else
        *out = task;
    return code;
}

int32_t kvb_task_traffic(const kvb_task *task, kvb_traffic *traffic)
{
    TRY(kvb_check_given("task", task));
    TRY(kvb_check_given("traffic", traffic));
    *traffic = task->traffic;
    return KVB_OK;
}

static uint32_t total(const kvb_sum *sum)
{
    uint32_t words = 0;
    for (int i = 0; i < SUM_LANES; i++)
        words += sum->lanes[i];
    for (int i = 0; i < SUM_REST; i++)
        words += sum->rest[i];
    return words;
}

int32_t kvb_task_sum(const kvb_task *task, uint32_t *sum)
{
    uint32_t words = 0;
    TRY(kvb_check_given("task", task));
    TRY(kvb_check_given("sum", sum));
    if (!task->sums)
        return kvb_fail(KVB_UNSUPPORTED,
                        "task is neither a twin nor a read; only these have a sum");
    for (int32_t i = 0; i < task->threads; i++)
        words += total(&task->sums[i]);
    *sum = words & 0xffff;
    return KVB_OK;
}
