/* Begins a unit: scaled q, the tokens that each query row attends to, empty states. Ends a unit. */
#include <math.h>
#include <string.h>

#include "decode/decode.h"

/* Copy `dim` elements times `scale`, in parts of `part` elements that are `stride` floats apart. */
static inline void put_parts(const float *restrict from, int64_t dim, float scale,
                             float *restrict to, int64_t stride, const int64_t part)
{
    int64_t d = 0;
    for (; d + part <= dim; d += part, to += stride)
        for (int64_t i = 0; i < part; i++)
            to[i] = from[d + i] * scale;
    for (; d < dim; d++)
        *to++ = from[d] * scale;
}

/* Store a query row in its group, times `scale` and times `channel` (unless null), at the places of
 * q_index(). Usual lengths of parts are constants here, so that the compiler vectorises them. */
static void put_query(const kvb_group *g, int64_t q_row, const float *from, const float *channel,
                      float scale)
{
    _Alignas(LINE) float folded[DIM_MAX];
    for (int64_t d = 0; channel && d < g->k_dim; d++)
        folded[d] = from[d] * channel[d];
    from = channel ? folded : from;
    float *to = (float *)(uintptr_t)g->q + q_row * g->part;
    const int64_t stride = g->slots * g->part;
    if (g->part == LANES)
        put_parts(from, g->k_dim, scale, to, stride, LANES);
    else if (g->part == LANES / 4)
        put_parts(from, g->k_dim, scale, to, stride, LANES / 4);
    else
        put_parts(from, g->k_dim, scale, to, stride, g->part);
}

/* Set how q of a group with `q_rows` query rows is stored. */
static void begin_rows(const kvb_decode_task *task, int64_t q_rows, kvb_group *g)
{
    const int64_t of_eight = kvb_tier_of(task->args.isa)->q_part;
    /* dot converts each query row by itself */
    const bool by_rows = !of_eight || task->args.variant == VARIANT_DOT;
    g->q_rows = (int32_t)q_rows;
    g->slots = 1 << kvb_class(q_rows);
    g->part = by_rows ? task->k_pad : q_rows > Q_ROWS / 2 ? of_eight : LANES;
}

/* Set the tokens that a query row attends to. In the core roof's walk it attends to all. */
static void begin_seen(const kvb_decode *a, int64_t seq, int64_t query, kvb_group *g, int64_t r)
{
    const kvb_seen seen =
        a->wrap ? (kvb_seen){.end = INT64_MAX, .newest = INT64_MAX} : kvb_seen_by(a, seq, query);
    g->kepts[r] = seen.kept;
    g->firsts[r] = seen.first;
    g->ends[r] = seen.end;
    g->words[r] = seen.word;
    g->newest = at_most(g->newest, seen.newest);
    g->all_kept = at_most(g->all_kept, seen.kept);
    g->all_from = at_least(g->all_from, seen.first);
    g->all_to = at_most(g->all_to, at_most(seen.end, seen.newest));
}

/* Begin a group with query rows first .. first + q_rows of a KV head. */
static void begin_group(const kvb_decode_task *task, const kvb_unit *unit, int64_t head,
                        int64_t first, int64_t q_rows, kvb_group *g)
{
    const kvb_decode *a = &task->args;
    const kvb_plane *k = &a->cache->k;
    const float scale = a->scale * kvb_log2_e * kvb_tensor(k->tensor),
                *channel = k->channel ? k->channel + head * k->dim : NULL;
    begin_rows(task, q_rows, g);
    memset((float *)(uintptr_t)g->q, 0, (size_t)kvb_floats(g->slots * g->k_pad));
    memset(g->acc, 0, (size_t)kvb_floats(g->slots * g->v_pad));
    memset(g->sum, 0, (size_t)kvb_floats(g->slots * LANES));
    for (int h = 0; h < Q_ROWS; h++) {
        g->max[h] = -INFINITY;
        g->rescale[h] = 1.0f;
    }
    g->cap = a->softcap * kvb_log2_e;
    g->all_from = 0;
    g->all_kept = g->all_to = g->newest = INT64_MAX;
    for (int64_t r = 0; r < g->q_rows; r++) {
        const int64_t q_row = unit->q_row + first + r, query = kvb_query_of(a, q_row),
                      vector = kvb_q_vector(a, unit->seq, head, q_row);
        put_query(g, r, a->q + vector * g->k_dim, channel, scale);
        begin_seen(a, unit->seq, query, g, r);
        if (g->slopes) {
            g->slopes[r] = a->slope[vector % a->q_heads] * kvb_log2_e;
            g->owns[r] = kvb_own_token(a, unit->seq, query);
        }
    }
    if (g->prepared)
        kvb_qk_of(a)->prepare_query(g);
}

void kvb_unit_begin(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit)
{
    const int64_t q_rows = kvb_unit_rows(&task->args, unit);
    state->parts = (q_rows + task->most - 1) / task->most;
    for (int64_t h = 0; h < unit->heads; h++)
        for (int64_t p = 0; p < state->parts; p++)
            begin_group(task, unit, unit->head + h, p * task->most, kvb_part_rows(task, q_rows, p),
                        &state->groups[h * task->parts + p]);
}

static float total(const float *lanes)
{
    float sum = 0.0f;
    for (int i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

/* End a group, whose first query row is `first` of a KV head. */
static void end_group(const kvb_decode_task *task, const kvb_unit *unit, int64_t head,
                      int64_t first, const kvb_group *g)
{
    const float tensor = kvb_tensor(task->args.cache->v.tensor);
    for (int64_t r = 0; r < g->q_rows; r++)
        kvb_row_end(task, unit, head, first + r, g->max[r], total(g->sum + r * LANES),
                    g->acc + r * g->v_pad, tensor);
}

void kvb_unit_end(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit)
{
    for (int64_t h = 0; h < unit->heads; h++) {
        for (int64_t p = 0; p < state->parts; p++)
            end_group(task, unit, h, p * task->most, &state->groups[h * task->parts + p]);
        for (int64_t row = kvb_unit_rows(&task->args, unit); row < unit->q_rows; row++)
            kvb_row_end(task, unit, h, row, -INFINITY, 0.0f, NULL, 1.0f);
    }
    kvb_pace_unit(&state->pace);
}
