/* QK of rows of several KV heads in turn, if heads are inside a token: whole rows in address order,
 * as in qk_rows. Plain dtypes, all tiers, 1 and 2 query rows, or 4 if WHOLE_MOST is 4.
 *
 *   rows      | h0 t0 | h1 t0 | h0 t1 | h1 t1 | ...   16 at a time, of any heads
 *   scores[h] | t0 | t1 | ...                         each score goes to its own KV head */

/* Do LANES rows from `row` on. Consecutive rows are of consecutive KV heads. */
INLINE void CAT(qk_turns_, DTYPE)(const kvb_tile *tile, const kvb_group *group, int64_t row,
                                  int dim, float *scores, const int q_rows)
{
    const uint8_t *k = row_of(&tile->k, row, ORDER_ROWS);
    const int64_t kv_heads = tile->k.schedule->kv_heads;
    int64_t head = row % kv_heads, t = row / kv_heads;
    float sum[WHOLE_MOST * LANES * VL], found[WHOLE_MOST * LANES];
    for (int64_t r = 0, h = head; r < LANES; r++, h = h + 1 < kv_heads ? h + 1 : 0)
        CAT(qk_sums_, DTYPE)(k + r * tile->k.bytes, 0, tile->k.schedule->distance,
                             CAT(query_, DTYPE)(group + h), NULL, dim, sum + r * VL, q_rows, 1,
                             PLAIN && q_rows <= FEW_Q_ROWS ? LINES_PER_REQUEST : 1);
    KEEP_IN_MEMORY(sum);
    CAT(qk_merge_, DTYPE)(sum, found, LANES, q_rows);
    KEEP_IN_MEMORY(found);
    for (int r = 0; r < LANES; r++) {
        UNROLL_FOR (int h = 0; h < q_rows; h++)
            scores[head * HEAD_SCORES + h * QUERY_SCORES + t] = found[h * LANES + r];
        if (++head == kv_heads) {
            head = 0;
            t++;
        }
    }
}

INLINE void CAT(qk_turns_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                     const int q_rows)
{
    for (int64_t row = 0; row < tile->count * tile->k.schedule->kv_heads; row += LANES)
        if (group->k_dim == USUAL && q_rows <= FEW_Q_ROWS)
            CAT(qk_turns_, DTYPE)(tile, group, row, USUAL, scores, q_rows);
        else
            CAT(qk_turns_, DTYPE)(tile, group, row, group->k_dim, scores, q_rows);
}
OUT_OF_LINE(qk_turns, 1, float)
OUT_OF_LINE(qk_turns, 2, float)
#if WHOLE_MOST > 2
OUT_OF_LINE(qk_turns, 4, float)
#endif

INLINE void CAT(qk_in_turn_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                    const int q_rows)
{
#if WHOLE_MOST > 2
    if (q_rows > FEW_Q_ROWS) {
        CAT(qk_turns4_, DTYPE)(tile, group, scores);
        return;
    }
#endif
    if (q_rows == 1)
        CAT(qk_turns1_, DTYPE)(tile, group, scores);
    else
        CAT(qk_turns2_, DTYPE)(tile, group, scores);
}
