/* One op on given arguments, checked and planned: what run/run.c drives. */
#ifndef KVB_TASK_H
#define KVB_TASK_H

#include "base/check.h"
#include "base/sum.h"

#pragma GCC visibility push(hidden)

struct kvb_task {
    /* null, or: before a run, a code with its message where the task's passes cannot all be done.
     * Before the last of them the run will have added `grown` tokens to each sequence of `cache` */
    int32_t (*ready)(const kvb_task *task, int64_t grown);
    /* `work` on every thread; then `count`, where there is one, by the thread that is last to be
     * done, while all others wait; and after that barrier `finish` on every thread, where there is
     * one */
    void (*work)(kvb_task *task, int32_t thread, void *scratch);
    void (*count)(kvb_task *task);
    void (*finish)(kvb_task *task, int32_t thread, void *scratch);
    void (*dispose)(kvb_task *task); /* releases what the task owns, not the task */
    const kvb_cache *cache;          /* null where there is none */
    kvb_cache shape;                 /* as the cache was when the task was planned */
    int64_t advance;                 /* tokens that a pass adds to each of its sequences */
    int32_t threads;
    bool loaded;  /* a load with this task is under way */
    double pause; /* of that load: see kvb_load. 0: none */
    bool paces;   /* `work` waits after each unit; else all that a thread does in it is one unit */
    /* 1: the first 64 bytes of the scratch are double ticks[3], zeroed before each pass */
    int32_t stages;
    /* null, or: what a pass does in place of `work`, in this order */
    kvb_task **series;
    int32_t *kinds; /* [length]: which share the time of each counts to */
    int32_t length;
    /* per thread; 64-byte aligned, its content is whatever the last pass left */
    int64_t scratch_bytes;
    kvb_sum *sums; /* [threads], or null: what each thread has read in all passes */
    /* null, or what a plug-in's kernel did wrong in some pass; set on any thread */
    const char *fault;
    kvb_traffic traffic;
};
/* A zeroed task of `bytes` (a struct that begins with kvb_task), or null with the message set.
 * `cache` may be null. */
void *kvb_task_new(size_t bytes, const kvb_cache *cache, int32_t threads);
/* Room for the sums of a task that reads and nothing else; a code where memory is lacking. */
int32_t kvb_task_sums(kvb_task *task);
/* Hand a task out; or, where a code says why it could not be made, free it. Returns the code. */
int32_t kvb_task_made(kvb_task *task, int32_t code, kvb_task **out);

#pragma GCC visibility pop

#endif
