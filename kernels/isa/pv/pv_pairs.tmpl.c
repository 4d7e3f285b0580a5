/* PV of whole rows in address order, for 4 query rows: f32 if a vector is a line (WHOLE_MOST is 4),
 * rows of more than 8 vectors, or of several KV heads in turn. All sums are in L1. Rows of two
 * tokens are read side by side, so that each sum is stored once for both. Prefetches are still in
 * address order.
 *
 *   row t    | x0 | x1 | ...             acc[h][i] += p[h][t] * x[i] + p[h][t + 1] * y[i]
 *   row t+1  | y0 | y1 | ...
 *
 */
INLINE void CAT(pv_pairs_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                     const int q_rows)
{
    const int64_t stride = tile->v.bytes, next = tile->v.schedule->kv_heads * stride,
                  pad = group->v_pad;
    const uint8_t *row = tile->v.rows.from, *line = row + tile->v.schedule->distance;
    for (int64_t h = 0; h < tile->v.schedule->kv_heads; h++)
        CAT(pv_sums_, DTYPE)(group + h, q_rows, false);
    for (int t = 0; t < tile->count; t += 2, row += next)
        for (int64_t h = 0; h < tile->v.schedule->kv_heads; h++, row += stride) {
            const float *weights = p + h * HEAD_SCORES + t;
            vf w[8];
            UNROLL_FOR (int i = 0; i < q_rows * 2; i++)
                w[i] = v_set1(weights[i / 2 * QUERY_SCORES + i % 2]);
            for (int64_t at = 0; at < pad; at += VL, line += 2 * LINE) {
                float *acc = group[h].acc + at;
                vf x[2];
                UNROLL_FOR (int r = 0; r < 2; r++) {
                    kvb_fetch(line + r * LINE, true);
                    x[r] = LOAD(row + r * next + OFFSET(at), 0);
                }
                UNROLL_FOR (int i = 0; i < q_rows; i++) {
                    vf sum = v_load(acc + i * pad);
                    UNROLL_FOR (int r = 0; r < 2; r++)
                        v_fma_into(&sum, w[2 * i + r], x[r]);
                    v_store(acc + i * pad, sum);
                }
            }
        }
}
OUT_OF_LINE(pv_pairs, 4, const float)
