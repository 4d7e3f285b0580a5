#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { THREADS = 16 };

static kvb_team *teams[THREADS + 1];

int32_t run_tasks(kvb_task *const *tasks, int32_t count, int64_t passes, kvb_task *between,
                  int32_t threads)
{
    int32_t code = teams[threads] ? KVB_OK : kvb_team_open(NULL, threads, &teams[threads]);
    kvb_run_times times;
    memset(&times, 0, sizeof times);
    return code ? code : kvb_run(teams[threads], tasks, count, passes, between, &times);
}

int32_t run_on(int32_t planned, kvb_task *task, int32_t threads)
{
    if (planned)
        return planned;
    int32_t code = run_tasks(&task, 1, 1, NULL, threads);
    kvb_task_free(task);
    return code;
}

void teams_close(void)
{
    for (int i = 0; i <= THREADS; i++) {
        kvb_team_close(teams[i]); /* or null */
        teams[i] = NULL;
    }
}

int32_t run_decode(const kvb_decode *args, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_decode(args, threads, &task);
    return run_on(code, task, threads);
}

int32_t run_twin(const kvb_decode *args, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_twin(args, threads, &task);
    return run_on(code, task, threads);
}

int32_t run_append(const kvb_store *args, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_append(args, threads, &task);
    return run_on(code, task, threads);
}

int32_t run_bulk(const kvb_store *args, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_bulk(args, threads, &task);
    return run_on(code, task, threads);
}

int32_t run_unpack(const kvb_cache *cache, int64_t first, int64_t tokens, float *k, float *v,
                   int32_t isa, int32_t threads)
{
    kvb_task *task = NULL;
    int32_t code = kvb_task_unpack(cache, first, tokens, k, v, isa, threads, &task);
    return run_on(code, task, threads);
}

bool rig_open(rig *r, kvb_cache shape, int32_t guard)
{
    *r = (rig){.cache = shape};
    kvb_cache *c = &r->cache;
    if (!expect(!kvb_cache_plan(c), "plan: %s", kvb_message()) ||
        !expect(!kvb_arena_open(c->bytes, 0, guard, &r->arena), "arena: %s", kvb_message()))
        return false;
    expect(!kvb_cache_bind(c, r->arena.base), "bind: %s", kvb_message());
    r->lengths = need((size_t)c->batch * sizeof *r->lengths);
    c->lengths = r->lengths;
    if (c->table_stride) {
        r->table = need((size_t)(c->batch * c->table_stride) * sizeof *r->table);
        for (int64_t i = 0; i < c->batch * c->table_stride; i++)
            r->table[i] = (int32_t)i;
        c->table = r->table;
    }
    return true;
}

bool rig_part(rig *r, int32_t guard)
{
    kvb_cache *c = &r->cache;
    uint8_t **const planes[] = {&c->k.rows, &c->v.rows, &c->k.scales, &c->v.scales};
    const int64_t bytes[] = {c->k.bytes, c->v.bytes, c->k.scale_bytes, c->v.scale_bytes};
    for (int i = 0; i < 4; i++) {
        if (!bytes[i])
            continue;
        if (!expect(!kvb_arena_open(bytes[i], 0, guard, &r->apart[i]), "arena: %s", kvb_message()))
            return false;
        *planes[i] = r->apart[i].base;
    }
    return true;
}

void rig_close(rig *r)
{
    kvb_arena_close(&r->arena);
    for (int i = 0; i < 4; i++)
        kvb_arena_close(&r->apart[i]); /* or never opened */
    free(r->lengths);
    free(r->table);
}
