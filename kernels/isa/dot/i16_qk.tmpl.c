/* QK of dot by products of 16-bit numbers, of i8 rows that are not transposed: AVX2.
 *
 *   q[h]      | q0 q1 | q2 q3 | ...       V16 numbers of 16 bits
 *   row t     | c0 c1 | c2 c3 | ...       codes, widened as they are loaded; acc[h][t] grows by q0 c0 + q1 c1 in a lane */

INLINE void qk_step_dot_i8(vi *acc, kvb_places k, int at, const int16_t *q, const int heads)
{
    const int tokens = QK_ACC / heads;
    vi x[QK_ACC];
    UNROLL for (int t = 0; t < tokens; t++)
        x[t] = v_wide_codes(kvb_row_at(k, t) + at);
    UNROLL for (int h = 0; h < heads; h++) {
        vi w = v_load_i16(q + h * V16);
        UNROLL for (int t = 0; t < tokens; t++)
            v_dot_i16_into(&acc[INDEX(h, heads) * tokens + t], x[t], w);
    }
}

INLINE void qk_tokens_dot_i8(kvb_places k, prefetch *cursor, const int16_t *q, int dim, const float *each,
                            float *scores, const int heads, const int slots, const int order)
{
    enum { PARTS = LINE / V16 };
    const int tokens = QK_ACC / heads;
    vi acc[QK_ACC];
    UNROLL for (int i = 0; i < QK_ACC; i++)
        acc[i] = v_none();
    int at = 0;
    for (; at + LINE <= dim; at += LINE, q += PARTS * V16 * slots)
        UNROLL for (int s = 0; s < PARTS; s++) {
            UNROLL for (int t = 0; t < tokens; t++)
                if (t % PARTS == s)
                    prefetch_line(cursor, order);
            qk_step_dot_i8(acc, k, at + s * V16, q + s * V16 * slots, heads);
        }
    if (at < dim)
        UNROLL for (int t = 0; t < tokens; t++)
            prefetch_line(cursor, order);
    for (; at < dim; at += V16, q += V16 * slots)
        qk_step_dot_i8(acc, k, at, q, heads);
    vf sums[QK_ACC / VL];
    UNROLL for (int i = 0; i < QK_ACC; i += VL)
        sums[i / VL] = dot_sums(acc + i, 0);
    dot_scores(sums, each, scores, heads, tokens);
}

INLINE void qk_tile_dot_i8(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads,
                           const int order)
{
    const int pass = heads < QK_HEADS ? heads : QK_HEADS, tokens = QK_ACC / pass;
    const int16_t *q = (const int16_t *)(const void *)group->prepared->codes;
    float each[QK_ACC * HEADS];
    dot_steps_of(group->prepared->step, each, heads, tokens);
    prefetch cursor = prefetch_from(tile, tile->next.k, group->dim);
    for (int t = 0; t < tile->count; t += tokens) {
        const kvb_places k = kvb_rows_from(tile->k, t);
        prefetch_of(&cursor, tile, tile->k, tile->next.k, t, order);
        if (order != ORDER_PLAIN)
            qk_tokens_dot_i8(k, &cursor, q, group->dim, each, scores + t, pass, heads, order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < heads; h += pass)
            qk_tokens_dot_i8(k, NULL, q + h * V16, group->dim, each + h * tokens, scores + h * QUERY_SCORES + t, pass,
                             heads, ORDER_PLAIN);
    }
}
