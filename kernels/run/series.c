/* A series: tasks that one pass does one after the other. pass.c does them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/task.h"

enum { KINDS = 3 };

static void dispose(kvb_task *task)
{
    free(task->series);
    free(task->kinds);
}

static int32_t check_part(const char *name, const kvb_task *part, int32_t kind, int32_t threads)
{
    TRY(kvb_check_given(name, part));
    if (part->threads != threads)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is planned for %d threads, the series for %d", name,
                        part->threads, threads);
    const char *wrong = part->advance  ? "adds tokens"
                        : part->stages ? "counts stages"
                        : part->series ? "is a series"
                                       : NULL;
    if (wrong)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s %s; a series cannot contain it", name, wrong);
    if (kind < 0 || kind >= KINDS)
        return kvb_fail(KVB_BAD_ARGUMENT, "the kind of %s is %d; allowed is 0 to %d", name, kind,
                        KINDS - 1);
    return KVB_OK;
}

static int32_t check_parts(kvb_task *const *tasks, const int32_t *kinds, int32_t count,
                           int32_t threads)
{
    TRY(kvb_check_given("tasks", tasks));
    TRY(kvb_check_given("kinds", kinds));
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_range("count", count, 1, INT32_MAX));
    for (int32_t i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "tasks[%d]", i);
        TRY(check_part(name, tasks[i], kinds[i], threads));
    }
    return KVB_OK;
}

/* Add up the traffic of all parts. */
static void count_traffic(kvb_task *task)
{
    kvb_traffic *all = &task->traffic;
    for (int32_t i = 0; i < task->length; i++) {
        const kvb_traffic *own = &task->series[i]->traffic;
        all->flops += own->flops;
        all->compulsory += own->compulsory;
        all->issued += own->issued;
        all->line += own->line;
        all->kv += own->kv;
        all->scales += own->scales;
        all->table += own->table;
        task->scratch_bytes = at_least(task->scratch_bytes, task->series[i]->scratch_bytes);
    }
    all->ai = all->compulsory > 0.0 ? all->flops / all->compulsory : 0.0;
}

int32_t kvb_task_series(kvb_task *const *tasks, const int32_t *kinds, int32_t count,
                        int32_t threads, kvb_task **task)
{
    TRY(check_parts(tasks, kinds, count, threads));
    TRY(kvb_check_given("task", task));
    kvb_task *made = kvb_task_new(sizeof *made, NULL, threads);
    if (!made)
        return KVB_NO_MEMORY;
    made->dispose = dispose;
    made->length = count;
    made->series = calloc((size_t)count, sizeof *made->series);
    made->kinds = calloc((size_t)count, sizeof *made->kinds);
    if (!made->series || !made->kinds)
        return kvb_task_made(
            made, kvb_fail(KVB_NO_MEMORY, "no memory for a series of %d tasks", count), task);
    memcpy(made->series, tasks, (size_t)count * sizeof *tasks);
    memcpy(made->kinds, kinds, (size_t)count * sizeof *kinds);
    count_traffic(made);
    return kvb_task_made(made, KVB_OK, task);
}
