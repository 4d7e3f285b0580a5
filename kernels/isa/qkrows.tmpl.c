/* Scores of few heads, row after row in whole lines: the order in which hardware recognizes streams. That of qk.tmpl.c, a
 * line of many rows and then the next line of them, needs no sums in memory, and is what many heads want. */

/* `vecs` vectors of each row from where `row` is, and of q. */
INLINE void CAT(qk_chunk_, DTYPE)(vf *acc, const uint8_t *row, int64_t stride, int64_t apart, const vf *q,
                                  const int heads, const int rows, const int chains, const int vecs)
{
    vf x[FEW_HEADS * STEPS + QK_ACC];
    UNROLL for (int r = 0; r < rows; r++) {
        CAT(loads_, DTYPE)(row + r * stride, 0, vecs, x + r * vecs);
        UNROLL for (int s = 0; s < vecs; s += rows > 1 || vecs < ASKED * STEPS ? STEPS : ASKED * STEPS)
            kvb_fetch(row + r * stride + OFFSET(s * VL) + apart, true);
    }
    UNROLL for (int s = 0; s < vecs; s++)
        UNROLL for (int h = 0; h < heads; h++)
            UNROLL for (int r = 0; r < rows; r++) {
                vf *sum = &acc[(h * rows + r) * chains + s % chains];
                fma_of(sum, q[s * heads + h], x[r * vecs + s], heads);
            }
}

/* `vecs` vectors of q for each head. */
INLINE void CAT(qk_query_, DTYPE)(const float *q, const int heads, const int vecs, vf *to)
{
    UNROLL for (int s = 0; s < vecs; s++)
        UNROLL for (int h = 0; h < heads; h++)
            to[s * heads + h] = v_load(q + q_index(s * VL, h, heads, LANES));
}

/* LANES rows. Two heads take two at a time, so that a vector of q meets both, but long ones by themselves. */
INLINE void CAT(qk_lanes_, DTYPE)(const uint8_t *k, int64_t stride, int64_t apart, const float *q, int dim, float *scores,
                                  const int heads)
{
    const int rows = ELEMENT < 4 ? heads : 1, sums = heads * rows, chains = 4 / sums;
    const int most = QK_ACC / 2 / rows, vecs = STEPS > most ? STEPS : most;
    const bool kept = __builtin_constant_p(dim) && dim == vecs * VL; /* q, in registers */
    float sum[FEW_HEADS * LANES * VL];
    vf w[FEW_HEADS * (STEPS + QK_ACC)];
    if (kept)
        CAT(qk_query_, DTYPE)(q, heads, vecs, w);
    for (int t = 0; t < LANES; t += rows) {
        const uint8_t *row = k + t * stride;
        const float *at = q;
        int left = dim;
        vf acc[QK_ACC];
        UNROLL for (int i = 0; i < sums * chains; i++)
            acc[i] = v_zero();
        for (; left >= vecs * VL; left -= vecs * VL, row += OFFSET(vecs * VL), at += vecs * VL * heads) {
            if (!kept)
                CAT(qk_query_, DTYPE)(at, heads, vecs, w);
            CAT(qk_chunk_, DTYPE)(acc, row, stride, apart, w, heads, rows, chains, vecs);
        }
        for (; left >= SPAN; left -= SPAN, row += OFFSET(SPAN), at += SPAN * heads) {
            vf few[FEW_HEADS * STEPS];
            CAT(qk_query_, DTYPE)(at, heads, STEPS, few);
            CAT(qk_chunk_, DTYPE)(acc, row, stride, apart, few, heads, rows, chains, STEPS);
        }
        for (int in = 0; in < left; in += VL)
            UNROLL for (int r = 0; r < rows; r++) {
                if (in == 0)
                    kvb_fetch(row + r * stride + apart, true);
                vf x = LOAD(row + r * stride, 0, in);
                x = left - in < VL ? v_keep(x, left - in) : x;
                UNROLL for (int h = 0; h < heads; h++)
                    v_fma_into(&acc[(h * rows + r) * chains], v_load(at + q_index(in, h, heads, LANES)), x);
            }
        UNROLL for (int i = 0; i < sums; i++) {
            vf all = acc[i * chains];
            UNROLL for (int c = 1; c < chains; c++)
                all = v_add(all, acc[i * chains + c]);
            v_store(sum + (i / rows * LANES + t + i % rows) * VL, all);
        }
    }
    KEEP_IN_MEMORY(sum);
    for (int i = 0; i < heads * LANES; i += VL) {
        vf all[VL];
        UNROLL for (int l = 0; l < VL; l++)
            all[l] = v_load(sum + (i + l) * VL);
        v_store(scores + i / LANES * TILE + i % LANES, UNFOLD(v_sums(all)));
    }
}

INLINE void CAT(qk_rows_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads)
{
    enum { USUAL = 128 }; /* a constant, and all of q stays in registers where there are so many */
    for (int t = 0; t < tile->count; t += LANES) {
        const uint8_t *k = row_of(tile, tile->k, t, ROW_BY_ROW);
        if (group->dim == USUAL)
            CAT(qk_lanes_, DTYPE)(k, tile->stride, tile->apart, Q_OF(group), USUAL, scores + t, heads);
        else
            CAT(qk_lanes_, DTYPE)(k, tile->stride, tile->apart, Q_OF(group), group->dim, scores + t, heads);
    }
}
