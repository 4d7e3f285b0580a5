/* Softmax over a tile of scores, in log2 units: no dtype is asked for. */

/* 2^x for x <= 0: exact at 0, within 1 ulp elsewhere, 0 below -126, NaN stays NaN. The polynomial
 * is the degree 6 one of least relative error on [-0.5, 0.5] among those that are 1 at 0. */
INLINE vf v_exp2(vf x)
{
    const vf low = v_set1(-126.0f);
    vf n = v_round(v_max(low, x)); /* v_max returns its second operand where either is NaN */
    vf f = v_sub(x, n);
    vf p = v_set1(1.535333868e-4f);
    p = v_fma(p, f, v_set1(1.339887269e-3f));
    p = v_fma(p, f, v_set1(9.618437849e-3f));
    p = v_fma(p, f, v_set1(5.550332367e-2f));
    p = v_fma(p, f, v_set1(2.402264774e-1f));
    p = v_fma(p, f, v_set1(6.931471825e-1f));
    p = v_fma(p, f, v_set1(1.0f));
    return v_unless_below(v_scale2(p, n), x, low);
}

static float exp2_of(float x)
{
    float lanes[VL];
    v_store(lanes, v_exp2(v_set1(x)));
    return lanes[0];
}

/* -inf for scores in front of those that a query row attends to, behind them, and where its word
 * has no bit. */
static NOINLINE void softmax_mask(const kvb_tile *tile, const kvb_group *group, int q_row, float *s)
{
    const int lead = kvb_lead_of(tile, group, q_row), count = kvb_attended_of(tile, group, q_row),
              end = (int)round_up(tile->count, LANES), ragged = count / VL * VL;
    if (ragged < count)
        v_store(s + ragged, v_fill(v_load(s + ragged), count - ragged, -INFINITY));
    for (int t = (int)round_up(count, VL); t < end; t += VL)
        v_store(s + t, v_set1(-INFINITY));
    for (int t = 0; t < lead; t++)
        s[t] = -INFINITY;
    for (int t = kvb_worded(tile, group); t < count; t++)
        if (!kvb_word_has(tile, group, q_row, t))
            s[t] = -INFINITY;
}

static void softmax_max(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    const int end = (int)round_up(tile->count, LANES);
    const bool masked = kvb_masked(tile, group);
    for (int h = 0; h < group->q_rows; h++) {
        float *s = scores + h * QUERY_SCORES;
        for (int t = 0; tile->k.scale && t < end; t += VL)
            v_store(s + t, v_mul(v_load(s + t), v_load(tile->k.scale + t)));
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
