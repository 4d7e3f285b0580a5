/* QK of rows of several KV heads in turn, as they lie where heads lie inside a token: each
 * whole, in the order of addresses, as in qk_rows. Plain dtypes, all tiers, 1 and 2 heads, or 4
 * where ROW_HEADS is 4.
 *
 *   rows      | h0 t0 | h1 t0 | h0 t1 | h1 t1 | ...   16 of them at a time, of any heads:
 *   scores[h] | t0 | t1 | ...                         each goes to its own head's */

/* LANES rows from `row` on, each of the next KV head after the one before it. */
INLINE void CAT(qk_turns_, DTYPE)(const kvb_tile *tile, const kvb_group *group, int64_t row,
                                  int dim, float *scores, const int heads)
{
    const uint8_t *k = row_of(&tile->k, row, ORDER_ROWS);
    const int64_t kv_heads = tile->k.schedule->kv_heads;
    int64_t head = row % kv_heads, t = row / kv_heads;
    float sum[ROW_HEADS * LANES * VL], found[ROW_HEADS * LANES];
    for (int64_t r = 0, h = head; r < LANES; r++, h = h + 1 < kv_heads ? h + 1 : 0)
        CAT(qk_sums_, DTYPE)(k + r * tile->k.bytes, 0, tile->k.schedule->distance,
                             CAT(query_, DTYPE)(group + h), NULL, dim, sum + r * VL, heads, 1,
                             PLAIN && heads <= FEW_HEADS ? LINES_PER_REQUEST : 1);
    KEEP_IN_MEMORY(sum);
    CAT(qk_merge_, DTYPE)(sum, found, LANES, heads);
    KEEP_IN_MEMORY(found);
    for (int r = 0; r < LANES; r++) {
        UNROLL_FOR (int h = 0; h < heads; h++)
            scores[head * HEAD_SCORES + h * QUERY_SCORES + t] = found[h * LANES + r];
        if (++head == kv_heads) {
            head = 0;
            t++;
        }
    }
}

INLINE void CAT(qk_turns_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                     const int heads)
{
    for (int64_t row = 0; row < tile->count * tile->k.schedule->kv_heads; row += LANES)
        if (group->k_dim == USUAL && heads <= FEW_HEADS)
            CAT(qk_turns_, DTYPE)(tile, group, row, USUAL, scores, heads);
        else
            CAT(qk_turns_, DTYPE)(tile, group, row, group->k_dim, scores, heads);
}
OUT_OF_LINE(qk_turns, 1, float)
OUT_OF_LINE(qk_turns, 2, float)
#if ROW_HEADS > 2
OUT_OF_LINE(qk_turns, 4, float)
#endif

INLINE void CAT(qk_in_turn_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                    const int heads)
{
#if ROW_HEADS > 2
    if (heads > FEW_HEADS) {
        CAT(qk_turns4_, DTYPE)(tile, group, scores);
        return;
    }
#endif
    if (heads == 1)
        CAT(qk_turns1_, DTYPE)(tile, group, scores);
    else
        CAT(qk_turns2_, DTYPE)(tile, group, scores);
}
