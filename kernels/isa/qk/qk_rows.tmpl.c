/* QK of whole rows, one after another in address order: hardware prefetchers follow this order.
 * Plain dtypes, all tiers, 1 and 2 query rows, or 4 if WHOLE_MOST is 4. For more query rows,
 * qk_tokens is better: it reads a line of many rows, then the next line, and keeps no sums in
 * memory.
 *
 *   row t     | x0 | x1 | x2 | x3 |    acc[chain] += q[h] * x in 4 / q_rows / rows chains
 *   sum[h][t] | VL lanes |             lanes of 16 rows, still to be added up: in L1
 *
 * Several chains hide the latency of an addition. qk_merge adds the lanes up, VL rows at a time. */

/* Return how many vectors of a row are taken at a time: as many as fit in registers. With one query
 * row of floats, which are multiplied from memory, so many that one line in four can prefetch. With
 * four query rows, whose q is multiplied from memory, a line. */
INLINE int CAT(qk_vecs_, DTYPE)(const int q_rows, const int rows)
{
    int most = QK_ACC / 2 / rows;
    if (q_rows > FEW_Q_ROWS)
        most = STEPS;
    else if (q_rows == 1 && PLAIN)
        most = 8;
    return STEPS > most ? STEPS : most;
}

/* Multiply `vecs` vectors of each row, from `row` on, by q. One of `asked` lines prefetches
 * another; every line does so if there are fewer lines, or two rows side by side. */
INLINE void CAT(qk_chunk_, DTYPE)(vf *acc, const uint8_t *row, int64_t stride, int64_t distance,
                                  const vf *q, const int q_rows, const int rows, const int chains,
                                  const int vecs, const int asked)
{
    /* a vector of the row, or of q, is used only once */
    const bool once = q_rows == 1 || q_rows > FEW_Q_ROWS;
    vf x[WHOLE_MOST * STEPS + QK_ACC];
    UNROLL_FOR (int r = 0; r < rows; r++) {
        CAT(load_row_, DTYPE)(row + r * stride, 0, vecs, x + INDEX(r, rows) * vecs);
        UNROLL_FOR (int s = 0; s < vecs;
                    s += rows > 1 || vecs < asked * STEPS ? STEPS : asked * STEPS)
            kvb_fetch(row + r * stride + OFFSET(s * VL) + distance, true);
    }
    UNROLL_FOR (int s = 0; s < vecs; s++)
        UNROLL_FOR (int h = 0; h < q_rows; h++)
            UNROLL_FOR (int r = 0; r < rows; r++) {
                vf *sum = &acc[(INDEX(h, q_rows) * rows + INDEX(r, rows)) * chains + s % chains];
                fma_of(sum, q[s * q_rows + INDEX(h, q_rows)], x[INDEX(r, rows) * vecs + s], once);
            }
}

/* Load `vecs` vectors of q for each query row. */
INLINE void CAT(qk_query_, DTYPE)(const float *q, const int q_rows, const int vecs, vf *to)
{
    UNROLL_FOR (int s = 0; s < vecs; s++)
        UNROLL_FOR (int h = 0; h < q_rows; h++)
            to[s * q_rows + INDEX(h, q_rows)] = v_load(q + q_index(s * VL, h, q_rows, LANES));
}

/* Multiply `rows` rows by q, or by `kept`, all of q in registers. Lanes that are still to be added
 * up go to `sum`, LANES vectors apart. */
INLINE void CAT(qk_sums_, DTYPE)(const uint8_t *row, int64_t stride, int64_t distance,
                                 const float *q, const vf *kept, int dim, float *sum,
                                 const int q_rows, const int rows, const int asked)
{
    const int sums = q_rows * rows, chains = 4 / sums, vecs = CAT(qk_vecs_, DTYPE)(q_rows, rows);
    int left = dim;
    vf acc[QK_ACC], w[WHOLE_MOST * (STEPS + QK_ACC)];
    UNROLL_FOR (int i = 0; i < sums * chains; i++)
        acc[i] = v_zero();
    if (kept) { /* the whole row is one chunk */
        CAT(qk_chunk_, DTYPE)(acc, row, stride, distance, kept, q_rows, rows, chains, vecs, asked);
        left = 0;
    }
    for (; left >= vecs * VL;
         left -= vecs * VL, row += OFFSET(vecs * VL), q += vecs * VL * q_rows) {
        CAT(qk_query_, DTYPE)(q, q_rows, vecs, w);
        CAT(qk_chunk_, DTYPE)(acc, row, stride, distance, w, q_rows, rows, chains, vecs, asked);
    }
    for (; left >= SPAN; left -= SPAN, row += OFFSET(SPAN), q += SPAN * q_rows) {
        CAT(qk_query_, DTYPE)(q, q_rows, STEPS, w);
        CAT(qk_chunk_, DTYPE)(acc, row, stride, distance, w, q_rows, rows, chains, STEPS, asked);
    }
    for (int in = 0; in < left; in += VL)
        UNROLL_FOR (int r = 0; r < rows; r++) {
            if (in == 0)
                kvb_fetch(row + r * stride + distance, true);
            vf x = v_keep(LOAD(row + r * stride, in), left - in < VL ? left - in : VL);
            UNROLL_FOR (int h = 0; h < q_rows; h++)
                v_fma_into(&acc[(INDEX(h, q_rows) * rows + INDEX(r, rows)) * chains],
                           v_load(q + q_index(in, h, q_rows, LANES)), x);
        }
    UNROLL_FOR (int i = 0; i < sums; i++) {
        vf all = acc[i * chains];
        UNROLL_FOR (int c = 1; c < chains; c++)
            all = v_add(all, acc[i * chains + c]);
        v_store(sum + (i / rows * LANES + i % rows) * VL, all);
    }
}

/* Add up the lanes of LANES rows for each query row. Results are `stride` apart. */
INLINE void CAT(qk_merge_, DTYPE)(const float *sum, float *to, int stride, const int q_rows)
{
    for (int i = 0; i < q_rows * LANES; i += VL) {
        vf all[VL];
        UNROLL_FOR (int l = 0; l < VL; l++)
            all[l] = v_load(sum + (i + l) * VL);
        v_store(to + i / LANES * stride + i % LANES, CAT(unfold_, DTYPE)(v_sums(all)));
    }
}

/* Do LANES rows of one KV head. q is in registers or in memory. With two query rows, two rows are
 * taken at a time, so that a vector of q serves both; long rows are taken singly. With four query
 * rows, the loop over a row is not unrolled: one load instruction then goes from line to line, and
 * hardware prefetchers follow it. Eight load instructions took a fifth more time. */
INLINE void CAT(qk_lanes_, DTYPE)(const kvb_tile *tile, const uint8_t *k, const float *q, int dim,
                                  float *scores, const int q_rows, const bool keep)
{
    const int rows = ELEMENT < 4 ? q_rows : 1, vecs = CAT(qk_vecs_, DTYPE)(q_rows, rows);
    float sum[WHOLE_MOST * LANES * VL];
    vf kept[WHOLE_MOST * (STEPS + QK_ACC)];
    if (keep)
        CAT(qk_query_, DTYPE)(q, q_rows, vecs, kept);
    for (int t = 0; t < LANES; t += rows)
        CAT(qk_sums_, DTYPE)(k + t * tile->k.bytes, tile->k.bytes, tile->k.schedule->distance, q,
                             keep ? kept : NULL, dim, sum + t * VL, q_rows, rows,
                             q_rows > FEW_Q_ROWS ? 1 : LINES_PER_REQUEST);
    KEEP_IN_MEMORY(sum);
    CAT(qk_merge_, DTYPE)(sum, scores, QUERY_SCORES, q_rows);
}

INLINE void CAT(qk_rows_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                 const int q_rows)
{
    const float *q = CAT(query_, DTYPE)(group);
    const bool keep = CAT(qk_vecs_, DTYPE)(q_rows, ELEMENT < 4 ? q_rows : 1) * VL == USUAL;
    for (int t = 0; t < tile->count; t += LANES) {
        const uint8_t *k = row_of(&tile->k, t, ORDER_ROWS);
        if (q_rows <= FEW_Q_ROWS && group->k_dim == USUAL)
            CAT(qk_lanes_, DTYPE)(tile, k, q, USUAL, scores + t, q_rows, keep);
        else
            CAT(qk_lanes_, DTYPE)(tile, k, q, group->k_dim, scores + t, q_rows, false);
    }
}
