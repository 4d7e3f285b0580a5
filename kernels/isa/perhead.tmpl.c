/* One query head, token by token: dot product, online softmax, accumulators in memory. The honest baseline. */

INLINE float CAT(perhead_dot_, DTYPE)(const uint8_t *k, const float *q, int dim)
{
    vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int at = 0;
    for (; at + 4 * VL <= dim; at += 4 * VL)
        UNROLL for (int i = 0; i < 4; i++)
            sum[i] = v_fma(v_load(q + at + i * VL), LOAD_ANY(k, at + i * VL), sum[i]);
    for (; at + VL <= dim; at += VL)
        sum[0] = v_fma(v_load(q + at), LOAD_ANY(k, at), sum[0]);
    if (at < dim)
        sum[1] = v_fma(v_load(q + at), v_keep(LOAD_ANY(k, at), dim - at), sum[1]);
    return v_hsum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

INLINE void CAT(perhead_ahead_, DTYPE)(ahead *cursor, int dim, const bool hint)
{
    for (int at = 0; hint && at < dim; at += SPAN)
        ahead_line(cursor);
}

INLINE void CAT(perhead_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const bool hint)
{
    ahead k_ahead = AHEAD(tile, tile->k_ahead, group->dim), v_ahead = AHEAD(tile, tile->v_ahead, group->dim);
    float max = group->max[0], sum = group->sum[0], *acc = group->acc;
    for (int t = 0; t < tile->count; t++) {
        CAT(perhead_ahead_, DTYPE)(&k_ahead, group->dim, hint);
        float score = CAT(perhead_dot_, DTYPE)(kvb_row_at(tile->k, t), group->q, group->dim);
        if (SCALED)
            score *= tile->k_scale[t];
        if (score > max) {
            float rescale = max == -INFINITY ? 0.0f : exp2_of(max - score);
            sum *= rescale;
            for (int at = 0; at < group->dim; at += VL)
                v_store(acc + at, v_mul(v_load(acc + at), v_set1(rescale)));
            max = score;
        }
        float p = exp2_of(score - (max == -INFINITY ? 0.0f : max));
        sum += p;
        CAT(perhead_ahead_, DTYPE)(&v_ahead, group->dim, hint);
        vf w = v_set1(SCALED ? p * tile->v_scale[t] : p);
        for (int at = 0; at < group->dim; at += VL)
            v_store(acc + at, v_fma(w, LOAD_ANY(kvb_row_at(tile->v, t), at), v_load(acc + at)));
    }
    group->max[0] = max;
    group->sum[0] = sum;
}

static void CAT(perhead_, DTYPE)(const kvb_tile *tile, const kvb_group *group)
{
    if (tile->k_ahead.at)
        CAT(perhead_tile_, DTYPE)(tile, group, true);
    else
        CAT(perhead_tile_, DTYPE)(tile, group, false);
}
