/* Two teams: runs of one beside loads of the other. */
#ifndef KVB_CHECK_BESIDE_H
#define KVB_CHECK_BESIDE_H

#include "runs.h"

/* Teams of one thread and of two. They are open in check_beside(). */
extern kvb_team *one, *two;

/* loads.c: check what is refused. */
void check_loads(void);

/* Run three passes on the team of one thread, beside a load. */
static inline int32_t beside(kvb_task *const *tasks, int32_t count, kvb_task *between,
                             kvb_load *load)
{
    kvb_run_times times = {0};
    return kvb_run_beside(one, tasks, count, 3, between, &times, load);
}

/* Make a decode with two query heads for each KV head, with a plug-in's kernel if one is given. */
static inline kvb_task *decode_of(kvb_cache *cache, float *out, int32_t threads,
                                  void (*kernel)(const kvb_work *))
{
    kvb_decode args = {.cache = cache,
                       .q = source,
                       .out = out,
                       .q_heads = 2 * cache->kv_heads,
                       .isa = tiers[0],
                       .run = kernel};
    kvb_task *task = NULL;
    expect(!kvb_task_decode(&args, threads, &task), "decode: %s", kvb_message());
    return task;
}

/* Make a series that does a task twice. */
static inline kvb_task *twice(kvb_task *task, int32_t threads)
{
    kvb_task *const both[] = {task, task}, *series = NULL;
    const int32_t kinds[] = {0, 1};
    expect(!kvb_task_series(both, kinds, 2, threads, &series), "series: %s", kvb_message());
    return series;
}

#endif
