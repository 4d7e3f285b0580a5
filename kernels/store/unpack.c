/* unpack: decode stored rows to float32. */
#include <string.h>

#include "cache/touched.h"
#include "store/store.h"

enum { BLOCK = 16 }; /* tokens that are taken together */

typedef struct unpack_task {
    kvb_task task;
    const kvb_cache *cache;
    const kvb_tier *tier;
    int64_t first;
    int64_t tokens;
    float *k;
    float *v;
} unpack_task;

/* Return how many tokens the planes still hold. The oldest is token 0, or in a ring the one
 * `capacity` before the end. */
static int64_t live(const kvb_cache *c, int64_t seq)
{
    return at_most(c->lengths[seq], c->capacity);
}

/* Rows of a plane for one sequence and KV head, of which the cache holds `held`. */
typedef struct taken {
    int64_t rows[BLOCK], scales[BLOCK];
    int64_t first, held; /* token of the first row, number of rows held */
} taken;

static float scale_at(const kvb_plane *p, int64_t at)
{
    float scale = 1.0f;
    if (kvb_scaled(p))
        kvb_tier_scalar.codecs[p->scale == SCALE_F16 ? DTYPE_F16 : DTYPE_F32].decode(
            p->scales + at, 1.0f, 1, &scale);
    return scale;
}

/* Return a row: in place, or gathered from its block into `beside`. */
static const uint8_t *row_at(const kvb_plane *p, int64_t row, int64_t lane, uint8_t *beside)
{
    if (!p->cell)
        return p->rows + row;
    kvb_gather(p->dtype, p->cell, p->rows + row - lane * p->row_bytes, lane, p->dim, beside);
    return beside;
}

/* Decode row i of those taken. Tokens after the length, and blocks that the table leaves out,
 * become zeros. */
static void unpack_row(const unpack_task *task, const kvb_plane *p, const taken *from, int64_t head,
                       int64_t i, float *to)
{
    _Alignas(LINE) uint8_t beside[DIM_MAX * 4];
    const float tensor = kvb_tensor(p->tensor);
    if (i >= from->held || from->rows[i] < 0) {
        memset(to, 0, (size_t)p->dim * sizeof *to);
        return;
    }
    const int64_t lane = kvb_lane(task->cache, from->first + i);
    task->tier->codecs[p->dtype].decode(row_at(p, from->rows[i], lane, beside),
                                        scale_at(p, from->scales[i]), p->dim, to);
    for (int64_t d = 0; tensor != 1.0f && d < p->dim; d++)
        to[d] *= tensor;
    for (int64_t d = 0; p->channel && d < p->dim; d++)
        to[d] *= p->channel[head * p->dim + d];
}

/* Write tokens at .. at + count of the output, for one sequence and KV head. */
static void unpack_block(const unpack_task *task, int64_t seq, int64_t head, int64_t at,
                         int64_t count)
{
    const kvb_cache *c = task->cache;
    taken from = {.first = c->lengths[seq] - live(c, seq) + task->first + at,
                  .held = at_most(count, at_least(0, live(c, seq) - task->first - at))};
    for (int32_t i = 0; i < PLANES; i++) {
        const kvb_plane *p = kvb_plane_of(c, i);
        float *to = i == KVB_K ? task->k : task->v;
        kvb_offsets(c, p, seq, head, from.first, from.held, from.rows, from.scales);
        for (int64_t t = 0; t < count; t++)
            unpack_row(task, p, &from, head, t,
                       to + ((seq * task->tokens + at + t) * c->kv_heads + head) * p->dim);
    }
}

static void work(kvb_task *base, int32_t thread, void *scratch)
{
    const unpack_task *task = (const unpack_task *)base;
    int64_t heads = task->cache->kv_heads, blocks = (task->tokens + BLOCK - 1) / BLOCK;
    int64_t units = task->cache->batch * blocks * heads;
    (void)scratch;
    for (int64_t u = units * thread / base->threads; u < units * (thread + 1) / base->threads;
         u++) {
        int64_t block = u / heads % blocks * BLOCK;
        unpack_block(task, u / (heads * blocks), u % heads, block,
                     at_most(BLOCK, task->tokens - block));
    }
}

/* Check the caller's lengths and table, which may have changed since the task was planned. */
static int32_t ready(const kvb_task *base, int64_t grown)
{
    const unpack_task *task = (const unpack_task *)base;
    const kvb_cache *c = task->cache;
    TRY(kvb_check_cache(c));
    for (int64_t seq = 0; kvb_layouts[c->layout].paged && seq < c->batch; seq++)
        TRY(kvb_check_table(c, seq, 0, at_most(c->lengths[seq] + grown, c->capacity), -1));
    TRY(kvb_check_range("first", task->first, 0, c->capacity - 1));
    return kvb_check_range("tokens", task->tokens, 1, c->capacity - task->first);
}

/* Count the traffic of `rows` rows of each plane. */
static kvb_traffic traffic_of(const kvb_cache *c, double rows)
{
    const double floats = rows * (double)((c->k.dim + c->v.dim) * (int64_t)sizeof(float));
    kvb_traffic t = {.kv = rows * kvb_row_sizes(c), .scales = rows * kvb_scale_sizes(c)};
    t.compulsory = t.kv + t.scales + floats;
    t.issued = t.line = rows * (double)(c->k.row_bytes + c->v.row_bytes) + t.scales + floats;
    return t;
}

/* `first` counts from the oldest token that the cache holds. */
int32_t kvb_task_unpack(const kvb_cache *cache, int64_t first, int64_t tokens, float *k, float *v,
                        int32_t isa, int32_t threads, kvb_task **out)
{
    unpack_task args = {.cache = cache, .first = first, .tokens = tokens, .k = k, .v = v};
    TRY(kvb_check_threads(threads));
    TRY(ready(&args.task, 0));
    TRY(kvb_check_isa(isa));
    TRY(kvb_check_given("k", k));
    TRY(kvb_check_given("v", v));
    TRY(kvb_check_given("task", out));
    unpack_task *task = kvb_task_new(sizeof *task, cache, threads);
    if (!task)
        return KVB_NO_MEMORY;
    args.task = task->task;
    *task = args;
    task->tier = kvb_tier_of(isa);
    task->task.ready = ready;
    task->task.work = work;
    task->task.traffic = traffic_of(cache, (double)(cache->batch * tokens * cache->kv_heads));
    *out = &task->task;
    return KVB_OK;
}
