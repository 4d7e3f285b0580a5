/* A task: one op on checked arguments, with its plan. run/run.c runs it. */
#ifndef KVB_TASK_H
#define KVB_TASK_H

#include "base/check.h"
#include "base/sum.h"

#pragma GCC visibility push(hidden)

struct kvb_task {
    /* may be null. Called before a run: returns a code if the run cannot do all passes of the task.
     * Before the last one, the run will have added `grown` tokens to each sequence of `cache` */
    int32_t (*ready)(const kvb_task *task, int64_t grown);
    /* a pass: `work` on every thread; then `count` on the thread that ends last, while the others
     * wait; then `finish` on every thread. `count` and `finish` may be null */
    void (*work)(kvb_task *task, int32_t thread, void *scratch);
    void (*count)(kvb_task *task);
    void (*finish)(kvb_task *task, int32_t thread, void *scratch);
    void (*dispose)(kvb_task *task); /* frees what the task owns, but not the task */
    const kvb_cache *cache;          /* may be null */
    kvb_cache shape;                 /* a copy of the cache when the task was planned */
    int64_t advance;                 /* tokens that a pass adds to each sequence of the cache */
    int32_t threads;
    bool loaded;  /* a load now runs this task */
    double pause; /* of that load, see kvb_load; 0 = none */
    bool paces;   /* `work` waits after each unit; false: all work of a thread is one unit */
    /* 1: the first 64 bytes of the scratch are double ticks[3], zeroed before each pass */
    int32_t stages;
    /* [length] or null: tasks that a pass does one after the other, in place of `work` */
    kvb_task **series;
    int32_t *kinds; /* [length]: the share of kvb_run_times that each one's time counts to */
    int32_t length;
    /* bytes of scratch per thread: 64-byte aligned; holds whatever the last pass left */
    int64_t scratch_bytes;
    kvb_sum *sums; /* [threads] or null: checksum of what each thread has read in all passes */
    /* the rule that a plug-in's kernel broke in some pass, or null; any thread may set it */
    const char *fault;
    kvb_traffic traffic;
};
/* Allocate a zeroed struct of `bytes` that begins with a kvb_task. If memory is lacking, set the
 * message and return null. `cache` may be null. */
void *kvb_task_new(size_t bytes, const kvb_cache *cache, int32_t threads);
/* Allocate the checksums of a task that only reads. */
int32_t kvb_task_sums(kvb_task *task);
/* If `code` is KVB_OK, set *out to the task; else free the task. Returns the code. */
int32_t kvb_task_made(kvb_task *task, int32_t code, kvb_task **out);

#pragma GCC visibility pop

#endif
