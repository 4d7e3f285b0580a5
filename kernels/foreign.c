/* A plug-in's kernel: our units and our merge around its arithmetic. */
#include <math.h>
#include <string.h>

#include "decode.h"

/* Bytes of so many floats, on lines of their own. */
static int64_t lines(int64_t floats) { return round_up(floats * (int64_t)sizeof(float), LINE); }

int64_t kvb_foreign_scratch(const kvb_decode_task *task)
{
    int64_t states = task->heads * task->group;
    return 2 * lines(states) + lines(states * task->args.cache->head_dim);
}

static kvb_work over(const kvb_decode_task *task, uint8_t *scratch)
{
    int64_t each = lines(task->heads * task->group);
    return (kvb_work){
        .cache = task->args.cache,
        .group = task->group,
        .scale = task->args.scale,
        .max = (float *)(void *)scratch,
        .sum = (float *)(void *)(scratch + each),
        .acc = (float *)(void *)(scratch + 2 * each),
    };
}

/* A unit without tokens has no weight. */
static void leave_empty(const kvb_work *work)
{
    int64_t states = work->heads * work->group;
    for (int64_t i = 0; i < states; i++)
        work->max[i] = -INFINITY;
    memset(work->sum, 0, (size_t)states * sizeof *work->sum);
    memset(work->acc, 0, (size_t)(states * work->cache->head_dim) * sizeof *work->acc);
}

/* The core roof: as many tokens as the unit has, in windows of the first head. The answer is the last window's. */
static void run_wrapped(const kvb_decode *a, const kvb_unit *unit, kvb_work *work)
{
    work->seq = work->head = work->first = 0;
    for (int64_t done = 0; done < unit->count; done += work->count) {
        work->count = at_most(a->wrap, unit->count - done);
        a->run(work);
    }
}

void kvb_foreign(kvb_task *base, int32_t thread, void *scratch)
{
    const kvb_decode_task *task = (const kvb_decode_task *)base;
    const kvb_decode *a = &task->args;
    int64_t dim = a->cache->head_dim;
    kvb_work work = over(task, scratch);
    for (int64_t u = task->plan.thread_units[thread]; u < task->plan.thread_units[thread + 1]; u++) {
        const kvb_unit *unit = &task->plan.units[u];
        work.seq = unit->seq;
        work.head = unit->head;
        work.heads = unit->heads;
        work.first = unit->first;
        work.count = unit->count;
        work.q = a->q + (unit->seq * a->q_heads + unit->query) * dim;
        if (!unit->count)
            leave_empty(&work);
        else if (a->wrap)
            run_wrapped(a, unit, &work);
        else
            a->run(&work);
        for (int64_t i = 0; i < unit->heads * task->group; i++)
            kvb_head_end(task, unit, unit->query + i, work.max[i] * kvb_log2_e, work.sum[i], work.acc + i * dim,
                         1.0f);
    }
}
