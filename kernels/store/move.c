/* repack: grow a cache in place. Its stretches move to higher addresses, the last one first. */
#include <string.h>

#include "cache/touched.h"
#include "store/store.h"

typedef struct repack_task {
    kvb_task task;
    const kvb_cache *from, *to;
    const kvb_tier *tier;
} repack_task;

/* Whether the planes follow each other as kvb_cache_bind places them. */
static bool in_one_block(const kvb_cache *c)
{
    return c->v.rows == c->k.rows + c->k.bytes && c->k.scales == c->v.rows + c->v.bytes &&
           c->v.scales == c->k.scales + c->k.scale_bytes;
}

static int32_t check_pair(const kvb_cache *from, const kvb_cache *to)
{
    TRY(kvb_check_cache(from));
    TRY(kvb_check_cache(to));
    if (!kvb_same_rows(from, to))
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "to: layout, inner, dtypes, scales, channels, ring, batch, kv_heads, "
                        "head_dim and v_dim must be those of from");
    if (!kvb_layouts[from->layout].whole)
        return kvb_fail(KVB_BAD_ARGUMENT, "layout is %s; repack needs contiguous heads",
                        kvb_word("layout", from->layout));
    if (kvb_tensor(from->k.tensor) != kvb_tensor(to->k.tensor) ||
        kvb_tensor(from->v.tensor) != kvb_tensor(to->v.tensor))
        return kvb_fail(KVB_BAD_ARGUMENT, "to: k.tensor and v.tensor must be those of from");
    if (to->capacity < from->capacity)
        return kvb_fail(KVB_BAD_ARGUMENT, "to: capacity %lld is below %lld, that of from",
                        (long long)to->capacity, (long long)from->capacity);
    if (to->k.head_stride < from->k.head_stride || to->v.head_stride < from->v.head_stride)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "to: pad %lld moves rows to lower addresses; it must be at least %lld",
                        (long long)to->pad,
                        (long long)(from->k.head_stride - (to->k.head_stride - to->pad)));
    if (from->k.rows != to->k.rows || !in_one_block(from) || !in_one_block(to))
        return kvb_fail(KVB_BAD_ARGUMENT, "to: must be bound to the memory of from");
    for (int64_t seq = 0; seq < from->batch; seq++)
        if (from->lengths[seq] > from->capacity)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "lengths[%lld] is %lld: a ring that has wrapped cannot grow",
                            (long long)seq, (long long)from->lengths[seq]);
    return KVB_OK;
}

/* Move `bytes` bytes to the same or a higher address; the two places may overlap. They move in
 * parts that are as long as the move, the last part first. So no part is overwritten before it has
 * moved. / */
static void move_up(const kvb_tier *tier, uint8_t *to, const uint8_t *from, int64_t bytes)
{
    const int64_t way = to - from;
    if (0 < way && way < LINE)
        memmove(to, from, (size_t)bytes);
    else if (way)
        for (int64_t end = bytes, part; end > 0; end -= part) {
            part = at_most(way, end);
            kvb_copy(tier, to + end - part, from + end - part, part);
        }
}

/* The rows of a plane, or its scales. Those of sequence and head i begin at i * stride. */
typedef struct moved {
    uint8_t *to;
    const uint8_t *from;
    int64_t to_stride, from_stride;
    int64_t row, block; /* bytes of a row or scale, and how many of them move together */
    double payload;     /* bytes of `row` without padding */
} moved;

enum { MOVED = 2 * PLANES };

static moved scales_of(const kvb_plane *from, const kvb_plane *to)
{
    return (moved){.to = to->scales,
                   .from = from->scales,
                   .to_stride = to->scale_head_stride,
                   .from_stride = from->scale_head_stride,
                   .row = from->scale_token_stride,
                   .block = 1,
                   .payload = kvb_scale_size(from)};
}

static moved rows_of(const kvb_plane *from, const kvb_plane *to)
{
    return (moved){.to = to->rows,
                   .from = from->rows,
                   .to_stride = to->head_stride,
                   .from_stride = from->head_stride,
                   .row = from->token_stride,
                   .block = from->cell ? LANES : 1,
                   .payload = kvb_row_size(from)};
}

/* List what moves, in the order of moving: the last one in memory first. */
static void moved_of(const kvb_cache *from, const kvb_cache *to, moved all[MOVED])
{
    all[0] = scales_of(&from->v, &to->v);
    all[1] = scales_of(&from->k, &to->k);
    all[2] = rows_of(&from->v, &to->v);
    all[3] = rows_of(&from->k, &to->k);
}

/* Return the bytes that move for sequence and head i: those of its live rows, or of their blocks.
 */
static int64_t stretch(const kvb_cache *c, const moved *p, int64_t i)
{
    return round_up(c->lengths[i / c->kv_heads], p->block) * p->row;
}

/* Move all stretches. None moves to a lower address, and the last one moves first, so none is
 * overwritten before it has moved. */
static void repack(kvb_task *base, int32_t thread, void *scratch)
{
    const repack_task *task = (const repack_task *)base;
    const kvb_cache *c = task->from;
    moved all[MOVED];
    (void)thread;
    (void)scratch;
    moved_of(c, task->to, all);
    for (const moved *p = all; p < all + MOVED; p++)
        for (int64_t i = c->batch * c->kv_heads - 1; i >= 0; i--)
            move_up(task->tier, p->to + i * p->to_stride, p->from + i * p->from_stride,
                    stretch(c, p, i));
    memmove(task->to->lengths, c->lengths, (size_t)c->batch * sizeof *c->lengths);
}

/* Count what is read and written, both: `compulsory` is without padding, `issued` with it. Each
 * stretch counts lines as if it began on a line. Stretches that stay in place do not count. */
static kvb_traffic traffic_of(const kvb_cache *c, const kvb_cache *to)
{
    kvb_traffic t = {0};
    moved all[MOVED];
    moved_of(c, to, all);
    for (int k = 0; k < MOVED; k++)
        for (int64_t i = 0; i < c->batch * c->kv_heads; i++) {
            const moved *p = &all[k];
            if (p->to + i * p->to_stride == p->from + i * p->from_stride)
                continue;
            *(k < PLANES ? &t.scales : &t.kv) +=
                2.0 * (double)c->lengths[i / c->kv_heads] * p->payload;
            t.issued += 2.0 * (double)stretch(c, p, i);
            t.line += 2.0 * (double)round_up(stretch(c, p, i), LINE);
        }
    t.compulsory = t.kv + t.scales;
    return t;
}

/* Refuse a run that stores tokens before a repack: it must find the rows as the run began. */
static int32_t ready(const kvb_task *base, int64_t grown)
{
    const repack_task *task = (const repack_task *)base;
    if (grown)
        return kvb_fail(KVB_BAD_ARGUMENT, "lengths: the run stores tokens before a repack");
    return check_pair(task->from, task->to);
}

int32_t kvb_task_repack(const kvb_cache *from, const kvb_cache *to, int32_t isa, int32_t threads,
                        kvb_task **out)
{
    TRY(check_pair(from, to));
    TRY(kvb_check_isa(isa));
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_given("task", out));
    if (threads > 1)
        return kvb_fail(KVB_UNSUPPORTED,
                        "threads is %d; repack needs one thread, because each stretch moves to "
                        "where another one was",
                        threads);
    repack_task *task = kvb_task_new(sizeof *task, from, threads);
    if (!task)
        return KVB_NO_MEMORY;
    task->from = from;
    task->to = to;
    task->tier = kvb_tier_of(isa);
    task->task.work = repack;
    task->task.ready = ready;
    task->task.traffic = traffic_of(from, to);
    *out = &task->task;
    return KVB_OK;
}
