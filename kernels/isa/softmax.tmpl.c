/* Softmax over a tile of scores, in log2 units, for all dtypes. */

/* Return (2^f - 1) / f for f in [-0.5, 0.5]. 2^f is then a polynomial of degree 6 that is 1 at 0,
 * with the least relative error. */
INLINE vf v_slope_of_exp2(vf f)
{
    vf p = v_set1(1.535333868e-4f);
    p = v_fma(p, f, v_set1(1.339887269e-3f));
    p = v_fma(p, f, v_set1(9.618437849e-3f));
    p = v_fma(p, f, v_set1(5.550332367e-2f));
    p = v_fma(p, f, v_set1(2.402264774e-1f));
    return v_fma(p, f, v_set1(6.931471825e-1f));
}

/* Return 2^x for x <= 0: exact at 0, within 1 ulp elsewhere, 0 below -126. NaN stays NaN. */
INLINE vf v_exp2(vf x)
{
    const vf low = v_set1(-126.0f);
    vf n = v_round(v_max(low, x)); /* v_max returns its second operand if either is NaN */
    vf f = v_sub(x, n);
    vf p = v_fma(v_slope_of_exp2(f), f, v_set1(1.0f));
    return v_unless_below(v_scale2(p, n), x, low);
}

/* Return cap * tanh(x / cap) as cap * m / (m + 2), with m = 2^y - 1 and y = 2 log2(e) x / cap. m is
 * exact near 0, too. From y = 60 on the result does not change. NaN stays NaN. */
INLINE vf v_capped(vf x, float cap)
{
    const vf most = v_set1(60.0f), one = v_set1(1.0f);
    vf y = v_mul(x, v_set1(2.885390082f / cap));
    y = v_min(most, v_max(v_sub(v_zero(), most), y));
    vf n = v_round(y), f = v_sub(y, n);
    vf power = v_scale2(one, n);
    vf m = v_fma(v_mul(v_slope_of_exp2(f), f), power, v_sub(power, one));
    return v_div(v_mul(m, v_set1(cap)), v_add(m, v_set1(2.0f)));
}

static const float lanes_from_0[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Apply softcap and slopes to the scores of one query row. */
static NOINLINE void softmax_reshape(const kvb_tile *tile, const kvb_group *group, int q_row,
                                     float *s)
{
    const int end = (int)round_up(tile->count, LANES);
    for (int t = 0; group->cap != 0.0f && t < end; t += VL)
        v_store(s + t, v_capped(v_load(s + t), group->cap));
    if (!group->slopes)
        return;
    const vf slope = v_set1(group->slopes[q_row]), step = v_set1(VL);
    vf distance = v_add(v_load(lanes_from_0), v_set1((float)(tile->first - group->owns[q_row])));
    for (int t = 0; t < end; t += VL) {
        v_store(s + t, v_fma(slope, distance, v_load(s + t)));
        distance = v_add(distance, step);
    }
}

static float exp2_of(float x)
{
    float lanes[VL];
    v_store(lanes, v_exp2(v_set1(x)));
    return lanes[0];
}

/* Apply softcap and slope to the score of one token. */
static float reshaped_score(const kvb_tile *tile, const kvb_group *group, int t, float score)
{
    float lanes[VL];
    v_store(lanes, v_capped(v_set1(score), group->cap));
    score = group->cap != 0.0f ? lanes[0] : score;
    return group->slopes ? score + group->slopes[0] * (float)(tile->first + t - group->owns[0])
                         : score;
}

/* Set to -inf the scores of tokens that a query row does not attend to, and of padding. */
static NOINLINE void softmax_mask(const kvb_tile *tile, const kvb_group *group, int q_row, float *s)
{
    const int lead = kvb_lead_of(tile, group, q_row), count = kvb_attended_of(tile, group, q_row),
              end = (int)round_up(tile->count, LANES), ragged = count / VL * VL;
    if (ragged < count)
        v_store(s + ragged, v_fill(v_load(s + ragged), count - ragged, -INFINITY));
    for (int t = (int)round_up(count, VL); t < end; t += VL)
        v_store(s + t, v_set1(-INFINITY));
    for (int t = 0; t < tile->lead; t++)
        s[t] = -INFINITY;
    for (int t = kvb_kept_of(tile, group, q_row); t < lead; t++)
        s[t] = -INFINITY;
    for (int t = kvb_worded(tile, group); t < count; t++)
        if (!kvb_word_has(tile, group, q_row, t))
            s[t] = -INFINITY;
}

static void softmax_max(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    const int end = (int)round_up(tile->count, LANES);
    const bool masked = kvb_masked(tile, group), reshaped = kvb_reshaped(group);
    for (int h = 0; h < group->q_rows; h++) {
        float *s = scores + h * QUERY_SCORES;
        for (int t = 0; tile->k.scale && t < end; t += VL)
            v_store(s + t, v_mul(v_load(s + t), v_load(tile->k.scale + t)));
        if (reshaped)
            softmax_reshape(tile, group, h, s);
        if (masked)
            softmax_mask(tile, group, h, s);
        vf most = v_load(s);
        for (int t = VL; t < end; t += VL)
            most = v_max(most, v_load(s + t));
        float high = v_hmax(most);
        group->rescale[h] = 1.0f;
        if (high > group->max[h]) {
            group->rescale[h] = group->max[h] == -INFINITY ? 0.0f : exp2_of(group->max[h] - high);
            group->max[h] = high;
        }
    }
}

static void softmax_exp(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    const float *scale = tile->v.scale;
    int end = (int)round_up(tile->count, LANES);
    for (int h = 0; h < group->q_rows; h++) {
        float *s = scores + h * QUERY_SCORES, *sum = group->sum + h * LANES;
        vf max = v_set1(group->max[h] == -INFINITY ? 0.0f : group->max[h]),
           rescale = v_set1(group->rescale[h]);
        vf sums[LANES / VL];
        UNROLL_FOR (int i = 0; i < LANES / VL; i++)
            sums[i] = v_mul(v_load(sum + i * VL), rescale);
        for (int t = 0; t < end; t += LANES)
            UNROLL_FOR (int i = 0; i < LANES / VL; i++) {
                float *at = s + t + i * VL;
                vf p = v_exp2(v_sub(v_load(at), max));
                sums[i] = v_add(sums[i], p);
                v_store(at, scale ? v_mul(p, v_load(scale + t + i * VL)) : p);
            }
        UNROLL_FOR (int i = 0; i < LANES / VL; i++)
            v_store(sum + i * VL, sums[i]);
    }
}
