/* A small cache, tasks that store into it, and runs on one thread that may be refused. */
#ifndef KVB_CHECK_RUNS_H
#define KVB_CHECK_RUNS_H

#include <string.h>

#include "check.h"

enum { DIM = 16, CAPACITY = 20 };

/* The source of stores: zeros, unless a test fills it. */
static float source[CAPACITY * DIM];

static inline int32_t run(kvb_task *const *tasks, int32_t count, int64_t passes, kvb_task *between)
{
    return run_tasks(tasks, count, passes, between, 1);
}

static inline void refused(int32_t code, const char *name, const char *what)
{
    expect(code == KVB_BAD_ARGUMENT && strstr(kvb_message(), name), "%s: code %d, message \"%s\"",
           what, code, code ? kvb_message() : "");
}

/* Open a cache of one sequence and head; if it is paged, it has two blocks. */
static inline bool open_rig(rig *r, const char *layout)
{
    return rig_open(r,
                    (kvb_cache){.layout = word_of("layout", layout),
                                .batch = 1,
                                .kv_heads = 1,
                                .head_dim = DIM,
                                .capacity = CAPACITY,
                                .block_tokens = CAPACITY / 2,
                                .blocks = 2},
                    1);
}

static inline kvb_task *store_of(kvb_cache *cache, int64_t tokens, int32_t advance)
{
    kvb_task *task = NULL;
    kvb_store args = {.cache = cache,
                      .k = source,
                      .v = source,
                      .tokens = tokens,
                      .isa = tiers[0],
                      .advance = advance};
    expect(!kvb_task_bulk(&args, 1, &task), "bulk: %s", kvb_message());
    return task;
}

#endif
