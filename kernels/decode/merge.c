/* Writes the results of units: outputs, or partial states, which are merged to outputs later. */
#include <math.h>
#include <string.h>

#include "decode/decode.h"

/* Return the factor that normalises a query row's output: 1 / sum of its weights, relative to
 * `max`. Only here its sink is added, as one more weight. A row without tokens has no weight, or
 * only its sink's: its output is zero. */
static float inverse(const kvb_decode *a, int64_t vector, float max, float sum)
{
    if (a->sink && max > -INFINITY)
        sum += exp2f(a->sink[vector % a->q_heads] * kvb_log2_e - max);
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

static float *partial_of(const kvb_decode_task *task, int64_t index)
{
    return task->partials + index * (LANES + task->v_pad);
}

void kvb_row_end(const kvb_decode_task *task, const kvb_unit *unit, int64_t head, int64_t q_row,
                 float max, float sum, const float *acc, float tensor)
{
    const kvb_decode *a = &task->args;
    const int64_t dim = a->cache->v.dim;
    float factor = tensor, *to;
    if (unit->partial < 0) {
        const int64_t vector = kvb_q_vector(a, unit->seq, unit->head + head, unit->q_row + q_row);
        to = a->out + vector * dim;
        factor *= inverse(a, vector, max, sum);
    } else {
        to = partial_of(task, unit->partial + head * unit->q_rows + q_row);
        to[0] = max;
        to[1] = sum;
        to += LANES;
    }
    for (int64_t d = 0; d < dim; d++)
        to[d] = acc ? acc[d] * factor : 0.0f;
}

/* Merge the partial states of one query row, in token order, whatever thread made them. */
static void merge(const kvb_decode_task *task, int64_t scan, int64_t state)
{
    const kvb_decode *a = &task->args;
    const int64_t dim = a->cache->v.dim;
    const kvb_unit *unit = task->plan.units + task->plan.scan_units[scan],
                   *end = task->plan.units + task->plan.scan_units[scan + 1];
    const int64_t vector = kvb_q_vector(a, unit->seq, unit->head + state / unit->q_rows,
                                        unit->q_row + state % unit->q_rows);
    float *out = a->out + vector * dim;
    float max = -INFINITY, sum = 0.0f;
    for (const kvb_unit *u = unit; u < end; u++)
        max = fmaxf(max, partial_of(task, u->partial + state)[0]);
    memset(out, 0, (size_t)dim * sizeof *out);
    for (const kvb_unit *u = unit; u < end; u++) {
        const float *part = partial_of(task, u->partial + state);
        float weight = max == -INFINITY ? 1.0f : exp2f(part[0] - max);
        sum += part[1] * weight;
        for (int64_t d = 0; d < dim; d++)
            out[d] += part[LANES + d] * weight;
    }
    float factor = inverse(a, vector, max, sum);
    for (int64_t d = 0; d < dim; d++)
        out[d] *= factor;
}

void kvb_merge(kvb_task *base, int32_t thread, void *scratch)
{
    kvb_decode_task *task = (kvb_decode_task *)base;
    (void)scratch;
    for (int64_t scan = 0, count = 0; scan < task->plan.scans; scan++) {
        if (task->plan.scan_units[scan + 1] - task->plan.scan_units[scan] < 2)
            continue;
        for (int64_t state = 0; state < task->plan.states; state++)
            if (count++ % base->threads == thread)
                merge(task, scan, state);
    }
}
