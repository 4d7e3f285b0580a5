/* Stored rows back to float32. */
#include <string.h>

#include "store/store.h"

enum { BLOCK = 16 }; /* tokens taken together */

typedef struct unpack_task {
    kvb_task task;
    const kvb_cache *cache;
    const kvb_tier *tier;
    int64_t first;
    int64_t tokens;
    float *k;
    float *v;
} unpack_task;

/* Tokens that the planes still hold. The oldest is token 0, or in a ring the one `capacity` before
 * the end. */
static int64_t live(const kvb_cache *c, int64_t seq)
{
    return at_most(c->lengths[seq], c->capacity);
}

static float scale_at(const kvb_cache *c, const uint8_t *at)
{
    float scale = 1.0f;
    if (kvb_formats[c->k.dtype].scaled)
        kvb_tier_scalar.rows[c->k.scale == SCALE_F16 ? DTYPE_F16 : DTYPE_F32].decode(at, 1.0f, 1,
                                                                                     &scale);
    return scale;
}

/* The row of a token's K, in its place or out of its block. */
static const uint8_t *k_row(const kvb_cache *c, int64_t row, int64_t lane, uint8_t *out)
{
    if (!kvb_layouts[c->layout].transposed)
        return c->k.rows + row;
    kvb_gather(c->k.dtype, c->k.rows + row - lane * c->k.row_bytes, lane, c->head_dim, out);
    return out;
}

static void times(float *row, int64_t dim, float tensor)
{
    for (int64_t d = 0; tensor != 1.0f && d < dim; d++)
        row[d] *= tensor;
}

/* Tokens at .. at + count of the output, of one sequence and KV head. What the cache does not hold
 * becomes zero: tokens behind the length, and blocks that the table leaves out. */
static void unpack_block(const unpack_task *task, int64_t seq, int64_t head, int64_t at,
                         int64_t count)
{
    const kvb_cache *c = task->cache;
    void (*decode)(const uint8_t *, float, int64_t, float *) = task->tier->rows[c->k.dtype].decode;
    int64_t held = at_most(count, at_least(0, live(c, seq) - task->first - at)), rows[BLOCK],
            scales[BLOCK];
    int64_t first = c->lengths[seq] - live(c, seq) + task->first + at;
    _Alignas(LINE) uint8_t row[DIM_MAX * 4];
    kvb_offsets(c, seq, head, first, held, rows, scales);
    for (int64_t i = 0; i < count; i++) {
        int64_t to = ((seq * task->tokens + at + i) * c->kv_heads + head) * c->head_dim;
        if (i < held && rows[i] >= 0) {
            const uint8_t *k = k_row(c, rows[i], kvb_lane(c, first + i), row);
            decode(k, scale_at(c, c->k.scales + scales[i]), c->head_dim, task->k + to);
            decode(c->v.rows + rows[i], scale_at(c, c->v.scales + scales[i]), c->head_dim,
                   task->v + to);
            times(task->k + to, c->head_dim, kvb_tensor(c->k.tensor));
            times(task->v + to, c->head_dim, kvb_tensor(c->v.tensor));
        } else {
            memset(task->k + to, 0, (size_t)c->head_dim * sizeof *task->k);
            memset(task->v + to, 0, (size_t)c->head_dim * sizeof *task->v);
        }
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

/* What belongs to the caller and may have changed since the task was planned. */
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

/* `first` counts from the oldest token that is held. */
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
    double rows = 2.0 * (double)(cache->batch * tokens * cache->kv_heads);
    double kv = rows * (double)kvb_payload(cache->k.dtype, cache->head_dim);
    double scales =
        kvb_formats[cache->k.dtype].scaled ? rows * kvb_scale_bytes[cache->k.scale] : 0.0;
    double out_bytes = rows * (double)(cache->head_dim * 4);
    task->task.traffic =
        (kvb_traffic){.kv = kv,
                      .scales = scales,
                      .compulsory = kv + scales + out_bytes,
                      .issued = rows * (double)cache->k.row_bytes + scales + out_bytes,
                      .line = rows * (double)cache->k.row_bytes + scales + out_bytes};
    *out = &task->task;
    return KVB_OK;
}
