/* QK by products of bytes, of i8 rows that are not transposed. With V_SHARED it serves only groups
 * of one query row: others share vectors (qk_shared.tmpl.c). QK_ACC sums: q_rows x tokens.
 *
 *   q[h]      | b0 b1 b2 b3 | b4 ...      VB bytes
 *   row t     | c0 c1 c2 c3 | c4 ...      acc[h][t] += b0 c0 + b1 c1 + b2 c2 + b3 c3 in a lane */

INLINE void qk_step_bytes(vi *acc, kvb_places k, int at, const int8_t *q, const int q_rows,
                          const int tokens)
{
    vi x[QK_ACC];
    UNROLL_FOR (int t = 0; t < tokens; t++)
        x[t] = v_codes(kvb_row_at(k, t) + at);
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        vi w = v_load_bytes(q + h * VB);
        UNROLL_FOR (int t = 0; t < tokens; t++)
            v_dot_codes_into(&acc[INDEX(h, q_rows) * tokens + t], x[t], w, DOT_BIAS);
    }
}

/* Do QK_ACC whole rows for one query row. */
INLINE void qk_rows_bytes(vi *acc, const kvb_tile *tile, int first, prefetch *cursor,
                          const int8_t *q, int dim)
{
    UNROLL_FOR (int t = 0; t < QK_ACC; t++) {
        const uint8_t *row = row_of(&tile->k, first + t, ORDER_ROWS);
        for (int at = 0; at < dim; at += 2 * VB)
            UNROLL_FOR (int in = 0; in < 2 * VB; in += VB)
                if (at + in < dim) {
                    prefetch_with(cursor, row + at + in, 2 * t + in / VB, ORDER_ROWS);
                    v_dot_codes_into(&acc[t], v_codes(row + at + in), v_load_bytes(q + at + in),
                                     DOT_BIAS);
                }
    }
}

INLINE void qk_tokens_bytes(const kvb_tile *tile, int first, const kvb_group *group,
                            prefetch *cursor, int q_row, const float *each, float *scores,
                            const int q_rows, const int slots, const int order)
{
    enum { STEPS_OF_LINE = LINE / VB };
    const kvb_places k = kvb_rows_from(tile->k.rows, first);
    const int tokens = QK_ACC / q_rows, dim = group->k_dim;
    const int8_t *q = group->prepared->codes + q_row * VB;
    vi acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < QK_ACC; i++)
        acc[i] = v_none();
    int at = 0;
    if (order == ORDER_ROWS) {
        qk_rows_bytes(acc, tile, first, cursor, q, dim);
        at = dim;
    }
    for (; at + LINE <= dim; at += LINE, q += LINE * slots)
        UNROLL_FOR (int s = 0; s < STEPS_OF_LINE; s++) {
            UNROLL_FOR (int t = 0; t < tokens; t++)
                if (t % STEPS_OF_LINE == s)
                    prefetch_line(cursor, order);
            qk_step_bytes(acc, k, at + s * VB, q + s * VB * slots, q_rows, tokens);
        }
    if (at < dim)
        UNROLL_FOR (int t = 0; t < tokens; t++)
            prefetch_line(cursor, order);
    for (; at < dim; at += VB, q += VB * slots)
        qk_step_bytes(acc, k, at, q, q_rows, tokens);
    vf sums[QK_ACC / VL];
    UNROLL_FOR (int i = 0; i < QK_ACC; i += VL)
        sums[i / VL] =
            dot_sums(acc + i, group->prepared->first[q_row]); /* one query row; else firsts are 0 */
    dot_scores(sums, each, scores, q_rows, tokens);
}

INLINE void qk_tile_dot_i8(const kvb_tile *tile, const kvb_group *group, float *scores,
                           const int q_rows, const int order)
{
    const int pass = q_rows < QK_MOST ? q_rows : QK_MOST, tokens = QK_ACC / pass;
    prefetch cursor = prefetch_from(&tile->k, group->k_dim);
#ifdef V_SHARED
    if (q_rows > 1) {
        qk_tile_shared(tile, group, &cursor, scores, q_rows, order);
        return;
    }
#endif
    float each[QK_ACC * Q_ROWS];
    dot_steps_of(group->prepared->step, each, q_rows, tokens);
    for (int t = 0; t < tile->count; t += tokens) {
        prefetch_of(&cursor, tile, &tile->k, t, order);
        if (order != ORDER_PLAIN)
            qk_tokens_bytes(tile, t, group, &cursor, 0, each, scores + t, pass, q_rows, order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
            qk_tokens_bytes(tile, t, group, NULL, h, each + h * tokens,
                            scores + h * QUERY_SCORES + t, pass, q_rows, ORDER_PLAIN);
    }
}
