/* dot over i8 rows and packed rows. The rules are in tier/dot.h. */
#include <assert.h>
#include <math.h>

#include "tier/dot.h"
#include "scalar/scalar.h"

/* Return the largest |x|. */
static float largest(const float *x, int64_t n)
{
    float most = 0.0f;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* Return levels / most, or 0 if that is not finite: then all elements count as zero. */
static float steps(float levels, float most)
{
    float inverse = levels / most;
    return inverse <= 3.0e38f ? inverse : 0.0f;
}

/* Return how many elements of a query row share a step: a block, or all. */
static int64_t together(int32_t dtype)
{
    return kvb_formats[dtype].elements > 1 ? kvb_formats[dtype].elements : DIM_MAX;
}

/* Return the steps of a query row, one for each block. They are after the codes of all rows. */
static float *steps_of(const kvb_group *group, int64_t head)
{
    float *all = (float *)(void *)(group->prepared->codes + Q_ROWS * round_up(group->k_dim, LINE));
    return all + head * round_up(group->k_dim, LINE) / 32;
}

void kvb_scalar_prepare_query(int32_t dtype, const kvb_group *group)
{
    assert(group->prepared && group->part == group->k_pad);
    const int64_t block = together(dtype);
    for (int64_t h = 0; h < group->q_rows; h++)
        for (int64_t from = 0; from < group->k_dim; from += block) {
            const float *q = kvb_scalar_q(group, h) + from;
            int64_t count = at_most(block, group->k_dim - from);
            float most = largest(q, count), inverse = steps(DOT_QUERY, most), check = 0.0f;
            for (int64_t d = 0; d < count; d++)
                check += q[d] * 0.0f;           /* NaN if an element is not finite */
            for (int64_t d = 0; d < count; d++) /* [q_rows][dim] */
                group->prepared->codes[h * group->k_dim + from + d] =
                    check == 0.0f ? (int8_t)rintf(q[d] * inverse) : 0;
            steps_of(group, h)[from / block] = most / DOT_QUERY + check;
        }
}

void kvb_scalar_qk_dot(int32_t dtype, const kvb_tile *tile, const kvb_group *group, float *scores)
{
    kvb_scalar_assert(tile, group);
    const int64_t block = together(dtype);
    _Alignas(LINE) uint8_t beside[2 * DIM_MAX]; /* packed rows are longer than their codes */
    for (int32_t t = 0; t < round_up(tile->count, LANES); t++) {
        const uint8_t *k = kvb_side_row(dtype, &tile->k, t, group->k_dim, beside);
        for (int64_t h = 0; h < group->q_rows; h++) {
            const int8_t *q = group->prepared->codes + h * group->k_dim;
            double score = 0.0;
            for (int64_t from = 0; from < group->k_dim; from += block) {
                int32_t sum = 0;
                for (int64_t d = from; d < at_most(from + block, group->k_dim); d++)
                    sum += q[d] * kvb_scalar_code(dtype, k, d);
                double step = (double)steps_of(group, h)[from / block];
                score += (double)sum * (double)kvb_scalar_step(dtype, k, from) * step;
            }
            scores[h * QUERY_SCORES + t] = (float)score;
        }
    }
}

/* Return a weight times the scale of an element of V. A NaN becomes 0 here; it stays in the sum of
 * the weights. */
static float weighted(int32_t dtype, const uint8_t *v, int64_t d, float p)
{
    float w = p * kvb_scalar_step(dtype, v, d);
    return w == w ? w : 0.0f;
}

/* Add up the elements from `from` on that share weights. */
static void sum_block(int32_t dtype, const kvb_tile *tile, const kvb_group *group, const float *p,
                      int64_t h, int64_t from)
{
    const int64_t count = at_most(together(dtype), group->v_dim - from);
    _Alignas(LINE) uint8_t beside[2 * DIM_MAX]; /* packed rows are longer than their codes */
    float weights[TILE];
    int32_t sums[DIM_MAX] = {0};
    for (int32_t t = 0; t < tile->count; t++) {
        const uint8_t *v = kvb_side_row(dtype, &tile->v, t, group->v_dim, beside);
        weights[t] = weighted(dtype, v, from, p[h * QUERY_SCORES + t]);
    }
    const float most = largest(weights, tile->count), inverse = steps(DOT_WEIGHT, most);
    for (int32_t t = 0; t < tile->count; t++) {
        const uint8_t *v = kvb_side_row(dtype, &tile->v, t, group->v_dim, beside);
        for (int64_t d = 0; d < count; d++)
            sums[d] += (int32_t)rintf(weights[t] * inverse) * kvb_scalar_code(dtype, v, from + d);
    }
    for (int64_t d = 0; d < count; d++) {
        float *acc = &group->acc[h * group->v_pad + from + d];
        *acc = (float)((double)*acc * (double)group->rescale[h] +
                       (double)sums[d] * (double)(most / DOT_WEIGHT));
    }
}

void kvb_scalar_pv_dot(int32_t dtype, const kvb_tile *tile, const kvb_group *group, const float *p)
{
    kvb_scalar_assert(tile, group);
    for (int64_t h = 0; h < group->q_rows; h++)
        for (int64_t from = 0; from < group->v_dim; from += together(dtype))
            sum_block(dtype, tile, group, p, h, from);
}
