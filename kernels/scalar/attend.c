/* Attention over one tile. Sums over D and over a tile are double, so this tier is the most exact.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "scalar/scalar.h"

/* Return 2^x for x <= 0: 1 at 0, within 0.6 ulp down to -126, 0 below. NaN stays NaN. */
static float exp2_of(float x)
{
    if (x != x)
        return x;
    if (x < -126.0f)
        return 0.0f;
    int whole = (int)(x - 0.5f);                             /* nearest integer */
    double f = ((double)x - whole) * 0.69314718055994530942; /* 2^x = 2^whole * e^f */
    double sum = 1.0, term = 1.0;
    for (int n = 1; n <= 9; n++) {
        term *= f / n;
        sum += term;
    }
    uint64_t bits = (uint64_t)(whole + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return (float)(sum * power);
}

void kvb_scalar_assert(const kvb_tile *tile, const kvb_group *group)
{
    assert(tile->count > 0 && tile->count <= TILE && tile->lead >= 0 && tile->lead < LANES &&
           tile->lead < tile->count);
    assert(group->q_rows > 0 && group->q_rows <= Q_ROWS);
    assert(group->k_dim > 0 && group->k_dim <= group->k_pad && group->k_dim <= DIM_MAX);
    assert(group->v_dim > 0 && group->v_dim <= group->v_pad && group->v_dim <= DIM_MAX);
    assert(group->part == group->k_pad);
    (void)tile, (void)group; /* a release build asserts nothing */
}

/* q[head] . k */
static float dot(const kvb_group *group, int64_t head, const float *k)
{
    double sum = 0.0;
    for (int64_t d = 0; d < group->k_dim; d++)
        sum += (double)kvb_scalar_q(group, head)[d] * (double)k[d];
    return (float)sum;
}

void kvb_scalar_qk(int32_t read, const kvb_tile *tile, const kvb_group *group, float *scores)
{
    kvb_scalar_assert(tile, group);
    _Alignas(LINE) uint8_t beside[DIM_MAX * 4];
    float k[DIM_MAX];
    for (int32_t t = 0; t < round_up(tile->count, LANES); t++) {
        kvb_scalar_decode(read, kvb_side_row(read, &tile->k, t, group->k_dim, beside), 1.0f,
                          group->k_dim, k);
        for (int64_t h = 0; h < group->q_rows; h++)
            scores[h * QUERY_SCORES + t] = dot(group, h, k);
    }
}

/* Apply softcap and slope to the score of a token. */
static float reshaped(const kvb_group *group, int64_t head, int64_t token, float score)
{
    const double cap = (double)group->cap;
    double s = cap != 0.0 ? cap * tanh((double)score / cap) : (double)score;
    if (group->slopes)
        s += (double)group->slopes[head] * (double)(token - group->owns[head]);
    return (float)s;
}

/* Whether a query row attends to token t of a tile. */
static bool attends(const kvb_tile *tile, const kvb_group *group, int head, int32_t t)
{
    const bool kept = t >= tile->lead && t < kvb_kept_of(tile, group, head);
    return (kept || t >= kvb_lead_of(tile, group, head)) &&
           t < kvb_attended_of(tile, group, head) &&
           (t < kvb_worded(tile, group) || kvb_word_has(tile, group, head, t));
}

/* Return the factor for old sums and accumulators under a new maximum. */
static float rescale_of(float old, float new) { return old == new ? 1.0f : exp2_of(old - new); }

void kvb_scalar_max(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    kvb_scalar_assert(tile, group);
    for (int h = 0; h < group->q_rows; h++) {
        float *s = scores + h * QUERY_SCORES, max = group->max[h];
        for (int32_t t = 0; t < round_up(tile->count, LANES); t++) {
            const float scale = tile->k.scale ? tile->k.scale[t] : 1.0f;
            s[t] = attends(tile, group, h, t) ? reshaped(group, h, tile->first + t, s[t] * scale)
                                              : -INFINITY;
            max = s[t] > max ? s[t] : max;
        }
        group->rescale[h] = rescale_of(group->max[h], max);
        group->max[h] = max;
    }
}

void kvb_scalar_exp(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    kvb_scalar_assert(tile, group);
    for (int64_t h = 0; h < group->q_rows; h++) {
        float *s = scores + h * QUERY_SCORES, *sum = group->sum + h * LANES;
        float max = group->max[h] == -INFINITY ? 0.0f : group->max[h]; /* never -inf - -inf */
        for (int32_t i = 0; i < LANES; i++)
            sum[i] *= group->rescale[h];
        for (int32_t t = 0; t < round_up(tile->count, LANES); t++) {
            s[t] = exp2_of(s[t] - max);
            sum[t % LANES] += s[t];
            if (tile->v.scale)
                s[t] *= tile->v.scale[t];
        }
    }
}

void kvb_scalar_pv(int32_t read, const kvb_tile *tile, const kvb_group *group, const float *p)
{
    kvb_scalar_assert(tile, group);
    _Alignas(LINE) uint8_t beside[DIM_MAX * 4];
    double sum[Q_ROWS][DIM_MAX];
    float v[DIM_MAX];
    for (int64_t h = 0; h < group->q_rows; h++)
        for (int64_t d = 0; d < group->v_dim; d++)
            sum[h][d] = (double)group->acc[h * group->v_pad + d] * (double)group->rescale[h];
    for (int32_t t = tile->lead; t < tile->count; t++) {
        kvb_scalar_decode(read, kvb_side_row(read, &tile->v, t, group->v_dim, beside), 1.0f,
                          group->v_dim, v);
        for (int64_t h = 0; h < group->q_rows; h++)
            for (int64_t d = 0; d < group->v_dim; d++)
                sum[h][d] += (double)p[h * QUERY_SCORES + t] * (double)v[d];
    }
    for (int64_t h = 0; h < group->q_rows; h++)
        for (int64_t d = 0; d < group->v_dim; d++)
            group->acc[h * group->v_pad + d] = (float)sum[h][d];
}

void kvb_scalar_perhead(int32_t dtype, const kvb_tile *tile, const kvb_group *group)
{
    kvb_scalar_assert(tile, group);
    assert(group->q_rows == 1 && tile->lead == 0);
    float row[DIM_MAX], *acc = group->acc;
    for (int32_t t = 0; t < tile->count; t++) {
        if (!attends(tile, group, 0, t))
            continue;
        kvb_scalar_decode(dtype, kvb_row_at(tile->k.rows, t),
                          tile->k.scale ? tile->k.scale[t] : 1.0f, group->k_dim, row);
        float score = reshaped(group, 0, tile->first + t, dot(group, 0, row));
        float max = score > group->max[0] ? score : group->max[0];
        float rescale = rescale_of(group->max[0], max);
        float p = exp2_of(score - (max == -INFINITY ? 0.0f : max));
        group->max[0] = max;
        group->sum[0] = group->sum[0] * rescale + p;
        kvb_scalar_decode(dtype, kvb_row_at(tile->v.rows, t),
                          tile->v.scale ? tile->v.scale[t] : 1.0f, group->v_dim, row);
        for (int64_t d = 0; d < group->v_dim; d++)
            acc[d] = acc[d] * rescale + p * row[d];
    }
}
