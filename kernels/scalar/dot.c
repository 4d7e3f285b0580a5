/* dot8 and dot16 over i8 rows: the rules stand in tier/dot.h. */
#include <assert.h>
#include <math.h>

#include "tier/dot.h"
#include "scalar/scalar.h"

/* The largest |x|. */
static float largest(const float *x, int64_t n)
{
    float most = 0.0f;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* Steps to one, or 0 where that is not finite: then all of it counts as zero. */
static float steps(float levels, float most)
{
    float inverse = levels / most;
    return inverse <= 3.0e38f ? inverse : 0.0f;
}

void kvb_scalar_prepare_query(int32_t row_kernel, const kvb_group *group)
{
    assert(group->prepared && group->part == group->dim_pad);
    int16_t *codes = (int16_t *)(void *)group->prepared->codes; /* [heads][dim] */
    const float levels = (float)dot_query(row_kernel, group->dim);
    for (int64_t h = 0; h < group->heads; h++) {
        const float *q = kvb_scalar_q(group, h);
        float most = largest(q, group->dim), inverse = steps(levels, most), check = 0.0f;
        for (int64_t d = 0; d < group->dim; d++) {
            check += q[d] * 0.0f; /* NaN where it is not finite */
            codes[h * group->dim + d] = check == 0.0f ? (int16_t)rintf(q[d] * inverse) : 0;
        }
        group->prepared->step[h] = most / levels + check;
    }
}

void kvb_scalar_qk_dot(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    kvb_scalar_assert(tile, group);
    assert(group->dim <= 2 * DOT16_DIM);
    const int16_t *codes = (const int16_t *)(const void *)group->prepared->codes;
    _Alignas(LINE) uint8_t beside[DIM_MAX];
    for (int32_t t = 0; t < round_up(tile->count, LANES); t++) {
        const int8_t *k = (const int8_t *)kvb_scalar_k(DTYPE_I8, tile, t, group->dim, beside);
        for (int64_t h = 0; h < group->heads; h++) {
            int32_t sum = 0;
            for (int64_t d = 0; d < group->dim; d++)
                sum += codes[h * group->dim + d] * k[d];
            scores[h * QUERY_SCORES + t] = (float)sum * group->prepared->step[h];
        }
    }
}

/* One weight as a whole number. A NaN counts as nothing here: it stays in the sum of the weights. */
static int32_t whole(float w, float inverse) { return w == w ? (int32_t)rintf(w * inverse) : 0; }

void kvb_scalar_pv_dot(int32_t row_kernel, const kvb_tile *tile, const kvb_group *group, const float *p)
{
    kvb_scalar_assert(tile, group);
    const float levels = (float)dot_weight(row_kernel);
    int32_t sum[HEADS][DIM_MAX] = {{0}};
    float most[HEADS];
    for (int64_t h = 0; h < group->heads; h++)
        most[h] = largest(p + h * QUERY_SCORES, tile->count);
    for (int32_t t = 0; t < tile->count; t++) {
        const int8_t *v = (const int8_t *)kvb_row_at(tile->v, t);
        for (int64_t h = 0; h < group->heads; h++) {
            int32_t weight = whole(p[h * QUERY_SCORES + t], steps(levels, most[h]));
            for (int64_t d = 0; d < group->dim; d++)
                sum[h][d] += weight * v[d];
        }
    }
    for (int64_t h = 0; h < group->heads; h++)
        for (int64_t d = 0; d < group->dim; d++) {
            float *acc = &group->acc[h * group->dim_pad + d];
            *acc = (float)((double)*acc * (double)group->rescale[h] + (double)sum[h][d] * (double)(most[h] / levels));
        }
}
