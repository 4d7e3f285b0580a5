/* QK of dot by products of 16-bit numbers, of i8 rows whose K is transposed: AVX2.
 *
 *   cells of a block   | t0: c0 c1 | t0: c2 c3 | t1: c0 c1 | t1: c2 c3 | ...   two lanes of a token, which are added at the end
 *   q[h]               | q0 q1     | q2 q3     | q0 q1     | q2 q3     | ...   the same again and again */

enum { I16_BLOCK_SUMS = QK_ACC * V16 / (4 * LANES) }; /* most heads of a block's scores */

enum { I16_BLOCK_VECTORS = 4 * LANES / V16 }; /* of a cell of a block's tokens */

/* Four codes of each token of a block, VL / 2 tokens to a vector: two lanes of each, which are added at the end. */
INLINE void qkt_cell_i16(vi *acc, const uint8_t *k, const int16_t *q, int at, const int heads, const int slots)
{
    const int16_t *four = q + at / V16 * V16 * slots + at % V16;
    vi x[I16_BLOCK_VECTORS];
    UNROLL for (int v = 0; v < I16_BLOCK_VECTORS; v++)
        x[v] = v_wide_codes(k + at * LANES + v * V16);
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int v = 0; v < I16_BLOCK_VECTORS; v++)
            v_dot_i16_into(&acc[INDEX(h, heads) * I16_BLOCK_VECTORS + v], x[v], v_set_eight(four + h * V16));
}

/* Few heads have several sums to a score, which hide the latency of one. */
INLINE void qkt_block_dot_i8(const uint8_t *k, prefetch *cursor, const int16_t *q, int dim, const float *step,
                            float *scores, const int heads, const int slots, const int order)
{
    const int sums = heads * I16_BLOCK_VECTORS, chains = QK_ACC / sums < 4 ? QK_ACC / sums : 4;
    vi acc[QK_ACC];
    UNROLL for (int i = 0; i < chains * sums; i++)
        acc[i] = v_none();
    int at = 0;
    for (; at + 4 * chains <= dim; at += 4 * chains)
        UNROLL for (int c = 0; c < chains; c++) {
            prefetch_line(cursor, order);
            qkt_cell_i16(acc + c % chains * sums, k, q, at + 4 * c, heads, slots);
        }
    for (; at < dim; at += 4) {
        prefetch_line(cursor, order);
        qkt_cell_i16(acc, k, q, at, heads, slots);
    }
    UNROLL for (int h = 0; h < heads; h++) {
        int32_t halves[2 * LANES];
        UNROLL for (int v = 0; v < I16_BLOCK_VECTORS; v++) {
            vi sum = dot_chained(&acc[INDEX(h, heads) * I16_BLOCK_VECTORS + v], chains, sums);
            memcpy(halves + v * VL, &sum, sizeof sum);
        }
        for (int t = 0; t < LANES; t++)
            scores[h * QUERY_SCORES + t] = (float)(halves[2 * t] + halves[2 * t + 1]) * step[h];
    }
}

INLINE void qkt_tile_dot_i8(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads,
                            const int order)
{
    const int pass = heads < I16_BLOCK_SUMS ? heads : I16_BLOCK_SUMS;
    const int16_t *q = (const int16_t *)(const void *)group->prepared->codes;
    const float *step = group->prepared->step;
    prefetch cursor = prefetch_from(tile, tile->next.k, group->dim);
    for (int t = 0; t < tile->count; t += LANES) {
        const uint8_t *k = kvb_row_at(tile->k, t);
        prefetch_of(&cursor, tile, tile->k, tile->next.k, t, order);
        if (order != ORDER_PLAIN)
            qkt_block_dot_i8(k, &cursor, q, group->dim, step, scores + t, pass, heads, order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < heads; h += pass)
            qkt_block_dot_i8(k, NULL, q + h * V16, group->dim, step + h, scores + h * QUERY_SCORES + t, pass, heads,
                            ORDER_PLAIN);
    }
}
