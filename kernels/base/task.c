/* What every task has in common. */
#include <stdlib.h>

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
    free(task);
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
