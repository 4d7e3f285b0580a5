/* perhead: one query row, token by token: dot product, online softmax, accumulators in memory. The
 * baseline that other variants are compared with. */

/* Whether a line begins with the vector of element at + i, in steps of four vectors. Rows that must
 * be converted are much work, so every line is prefetched. */
#define BEGINS(at, i) ((i) % SPAN == 0 && (SPAN <= 4 * VL || (at) % SPAN == 0))
#define NTH(i) (ELEMENT < 4 ? 0 : (i) / SPAN)

INLINE float CAT(perhead_dot_, DTYPE)(const uint8_t *k, const float *q, int dim, prefetch *cursor,
                                      const int order)
{
    vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int at = 0;
    for (; at + 4 * VL <= dim; at += 4 * VL)
        UNROLL_FOR (int i = 0; i < 4 * VL; i += VL) {
            if (BEGINS(at, i))
                prefetch_with(cursor, k + OFFSET(at + i), NTH(i), order);
            sum[i / VL] = v_fma(v_load(q + at + i), VALUES(k, at + i), sum[i / VL]);
        }
    for (; at < dim; at += VL) {
        if (at % SPAN == 0)
            prefetch_with(cursor, k + OFFSET(at), 0, order);
        vf row = VALUES(k, at);
        sum[0] = v_fma(v_load(q + at), at + VL <= dim ? row : v_keep(row, dim - at), sum[0]);
    }
    return v_hsum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

/* acc += w * v */
INLINE void CAT(perhead_add_, DTYPE)(float *acc, const uint8_t *v, vf w, int dim, prefetch *cursor,
                                     const int order)
{
    int at = 0;
    for (; at + 4 * VL <= dim; at += 4 * VL)
        UNROLL_FOR (int i = 0; i < 4 * VL; i += VL) {
            if (BEGINS(at, i))
                prefetch_with(cursor, v + OFFSET(at + i), NTH(i), order);
            v_store(acc + at + i, v_fma(w, VALUES(v, at + i), v_load(acc + at + i)));
        }
    for (; at < dim; at += VL) {
        if (at % SPAN == 0)
            prefetch_with(cursor, v + OFFSET(at), 0, order);
        v_store(acc + at, v_fma(w, VALUES(v, at), v_load(acc + at)));
    }
}

INLINE void CAT(perhead_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const int order)
{
    prefetch k_next = PREFETCH(&tile->k, group->k_dim), v_next = PREFETCH(&tile->v, group->v_dim);
    const float *k_scale = tile->k.scale, *v_scale = tile->v.scale;
    const int kept = kvb_kept_of(tile, group, 0), lead = kvb_lead_of(tile, group, 0),
              count = kvb_attended_of(tile, group, 0), worded = kvb_worded(tile, group);
    const bool reshaped = kvb_reshaped(group);
    float max = group->max[0], sum = group->sum[0], *acc = group->acc;
    for (int t = kept ? 0 : lead; t < count; t++) {
        if ((t >= kept && t < lead) || (t >= worded && !kvb_word_has(tile, group, 0, t)))
            continue;
        float score = CAT(perhead_dot_, DTYPE)(row_of(&tile->k, t, order), group->q, group->k_dim,
                                               &k_next, order);
        if (SCALED && k_scale)
            score *= k_scale[t];
        if (reshaped)
            score = reshaped_score(tile, group, t, score);
        if (score > max) {
            float rescale = max == -INFINITY ? 0.0f : exp2_of(max - score);
            sum *= rescale;
            for (int at = 0; at < group->v_dim; at += VL)
                v_store(acc + at, v_mul(v_load(acc + at), v_set1(rescale)));
            max = score;
        }
        float p = exp2_of(score - (max == -INFINITY ? 0.0f : max));
        sum += p;
        vf w = v_set1(SCALED ? p * v_scale[t] : p);
        CAT(perhead_add_, DTYPE)(acc, row_of(&tile->v, t, order), w, group->v_dim, &v_next, order);
    }
    group->max[0] = max;
    group->sum[0] = sum;
}

/* Fold a tile for one query row. K and V have one dtype, so they have one order. */
static void CAT(perhead_, DTYPE)(const kvb_tile *tile, const kvb_group *group)
{
    const int32_t order = tile->k.schedule->order;
    if (order == ORDER_PLAIN)
        CAT(perhead_tile_, DTYPE)(tile, group, ORDER_PLAIN);
    else if (PACK == 1 && order == ORDER_ROWS)
        CAT(perhead_tile_, DTYPE)(tile, group, ORDER_ROWS);
    else if (order == ORDER_LISTED)
        CAT(perhead_tile_, DTYPE)(tile, group, ORDER_LISTED);
    else
        CAT(perhead_tile_, DTYPE)(tile, group, ORDER_LISTED_L2);
}

#undef NTH
#undef BEGINS
