/* PV of whole rows in address order, for 1 and 2 query rows: rows too long for sums in registers,
 * or of several KV heads in turn. Plain dtypes, all tiers. The sums of all of D are in L1, and are
 * loaded and stored for each row.
 *
 *   rows     | h0 t0 | h1 t0 | h0 t1 | h1 t1 | ...   in memory, here of two KV heads
 *   acc[h0]  += p[h0][t0] * row, acc[h1] += p[h1][t0] * row, and so on
 *
 * 8, 4, 2 or 1 vectors are taken at a time. */

/* Add `vecs` vectors of one row to sums in memory. */
INLINE void CAT(pv_into_, DTYPE)(const uint8_t *row, int64_t distance, const float *p, float *acc,
                                 int64_t acc_stride, const int q_rows, const int vecs)
{
    vf x[PV_ACC];
    CAT(load_row_, DTYPE)(row, 0, vecs, x);
    UNROLL_FOR (int l = 0; l < vecs * VL;
                l += q_rows == 1 && PLAIN ? LINES_PER_REQUEST * SPAN : SPAN)
        kvb_fetch(row + OFFSET(l) + distance, true);
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vf w = v_set1(p[h * QUERY_SCORES]);
        UNROLL_FOR (int i = 0; i < vecs; i++) {
            float *at = acc + h * acc_stride + i * VL;
            vf sum = v_load(at);
            fma_of(&sum, w, x[i], q_rows == 1);
            v_store(at, sum);
        }
    }
}

/* Multiply all sums by `rescale` and deal them as loads of rows are; or undeal them (`back`). */
INLINE void CAT(pv_sums_, DTYPE)(const kvb_group *group, const int q_rows, const bool back)
{
    const int dim = (group->v_dim + VL - 1) / VL * VL;
    for (int h = 0; h < q_rows; h++) {
        float *acc = group->acc + h * group->v_pad;
        const vf rescale = v_set1(group->rescale[h]);
        for (int at = 0; at < dim; at += VL) {
            vf sum = v_load(acc + at);
            v_store(acc + at,
                    back ? CAT(unfold_, DTYPE)(sum) : CAT(fold_, DTYPE)(v_mul(sum, rescale)));
        }
        for (int at = 0; CAT(is_dealt_, DTYPE) && at + 2 * VL <= dim; at += 2 * VL) {
            vf pair[2] = {v_load(acc + at), v_load(acc + at + VL)};
            CAT(deal_, DTYPE)(pair, 2, back);
            v_store(acc + at, pair[0]);
            v_store(acc + at + VL, pair[1]);
        }
    }
}

INLINE void CAT(pv_rows_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                    const int q_rows)
{
    const int dim = (group->v_dim + VL - 1) / VL * VL;
    const int64_t distance = tile->v.schedule->distance;
    const uint8_t *row = tile->v.rows.from;
    for (int64_t h = 0; h < tile->v.schedule->kv_heads; h++)
        CAT(pv_sums_, DTYPE)(group + h, q_rows, false);
    for (int t = 0; t < tile->count; t++)
        for (int64_t h = 0; h < tile->v.schedule->kv_heads; h++, row += tile->v.bytes) {
            const float *weight = p + h * HEAD_SCORES + t;
            float *acc = group[h].acc;
            int at = 0;
#define INTO(vecs)                                                                               \
    for (; at + vecs * VL <= dim; at += vecs * VL)                                               \
        CAT(pv_into_, DTYPE)(row + OFFSET(at), distance, weight, acc + at, group->v_pad, q_rows, \
                             vecs);
            if (PV_ACC / q_rows >= 8)
                INTO(8)
            INTO(4)
            INTO(2)
            INTO(1)
#undef INTO
        }
    for (int64_t h = 0; h < tile->v.schedule->kv_heads; h++)
        CAT(pv_sums_, DTYPE)(group + h, q_rows, true);
}
OUT_OF_LINE(pv_rows, 1, const float)
OUT_OF_LINE(pv_rows, 2, const float)
