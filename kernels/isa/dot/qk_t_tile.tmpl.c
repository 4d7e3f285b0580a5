/* Scores of a tile whose K is transposed: defines QKT_TILE, which calls QKT_BLOCKS for one block or
 * two. It takes passes of at most QKT_SUMS query rows. Only the first pass prefetches, with
 * QKT_CURSOR. */

/* Do the next one or two blocks. */
INLINE void CAT(next_of_, QKT_BLOCKS)(const kvb_group *group, const uint8_t *const *k,
                                      prefetch *cursor, int q_row, float *scores, const int q_rows,
                                      const int slots, bool two, const int order)
{
    if (two)
        QKT_BLOCKS(group, k, cursor, q_row, scores, q_rows, slots, 2, order);
    else
        QKT_BLOCKS(group, k, cursor, q_row, scores, q_rows, slots, 1, order);
}

INLINE void QKT_TILE(const kvb_tile *tile, const kvb_group *group, float *scores, const int q_rows,
                     const int order)
{
    const int pass = q_rows < QKT_SUMS ? q_rows : QKT_SUMS;
    const bool paired = pass > 2 && 2 * pass <= QKT_SUMS && pairs_blocks(tile, order);
    prefetch cursor = QKT_CURSOR;
    for (int t = 0, step; t < tile->count; t += step) {
        const bool two = paired && t + LANES < tile->count;
        step = two ? 2 * LANES : LANES;
        const uint8_t *k[] = {row_of(&tile->k, t, order),
                              row_of(&tile->k, t + step - LANES, order)};
        prefetch_of(&cursor, tile, &tile->k, t, order);
        if (order != ORDER_PLAIN)
            CAT(next_of_, QKT_BLOCKS)(group, k, &cursor, 0, scores + t, pass, q_rows, two, order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
            CAT(next_of_, QKT_BLOCKS)(group, k, NULL, h, scores + h * QUERY_SCORES + t, pass,
                                      q_rows, two, ORDER_PLAIN);
    }
}

#undef QKT_BLOCKS
#undef QKT_TILE
#undef QKT_SUMS
#undef QKT_CURSOR
