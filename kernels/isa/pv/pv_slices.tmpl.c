/* PV by slices of D: any dtype, tier, group class and order.
 *
 *           D ->  |<- a slice ->|
 *   row t         | x0 | x1 |...|      at most 8 vectors of VL elements, times query rows PV_ACC
 *   row t+1       | x0 | x1 |...|      sum[h][i] += p[h][t] * x[i]
 *   ...                |
 *                      v
 *
 * Sums stay in registers for a run of rows, usually all rows of the tile. Then comes the next slice
 * of the same rows. */

/* Do a slice of q_rows x vecs vectors, from element `in` of the pack at `at` on, for the tokens
 * from `first` to `end`. Each token prefetches one line for every SPAN that begins in the slice. */
INLINE void CAT(pv_slice_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor,
                                  const float *p, const float *rescale, float *acc,
                                  int64_t acc_stride, int at, const int in, const int q_rows,
                                  const int vecs, const int order)
{
    vf sum[PV_ACC];
    HIDE(at);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        UNROLL_FOR (int i = 0; i < vecs; i++)
            sum[INDEX(h, q_rows) * vecs + i] = CAT(fold_, DTYPE)(
                v_mul(v_load(acc + h * acc_stride + at + in + i * VL), v_set1(rescale[h])));
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        CAT(deal_, DTYPE)(sum + INDEX(h, q_rows) * vecs, vecs, false);
    const int width = vecs * VL;
    /* the start of the slice in each row, so that addresses have two terms, not three */
    const kvb_side v = {.rows = {tile->v.rows.from + OFFSET(at), tile->v.rows.at},
                        .bytes = tile->v.bytes};
    const bool starts = width >= SPAN || (at + in) % SPAN == 0;
    for (int t = first; t < end; t++) {
        const uint8_t *row = row_of(&v, t, order);
        if (starts)
            UNROLL_FOR (int l = 0; l < width; l += SPAN)
                prefetch_with(cursor, row + OFFSET(in + l),
                              width < LINES_PER_REQUEST * SPAN ? 0 : l / SPAN, order);
#if PACK > 1
        /* weights are multiplied by scales, once for a pack; more query rows share values */
        if (q_rows <= 2) {
            UNROLL_FOR (int i = 0; i < vecs; i++) {
                vf codes = CODES(row, in + i * VL);
                vf scale = v_half(row + OFFSET(in + i * VL));
                UNROLL_FOR (int h = 0; h < q_rows; h++)
                    v_fma_into(&sum[INDEX(h, q_rows) * vecs + i],
                               v_mul(v_set1(p[h * QUERY_SCORES + t]), scale), codes);
            }
            continue;
        }
#endif
        vf x[PV_ACC];
        CAT(load_row_, DTYPE)(row, in, vecs, x);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            vf w = v_set1(p[h * QUERY_SCORES + t]);
            UNROLL_FOR (int i = 0; i < vecs; i++)
                fma_of(&sum[INDEX(h, q_rows) * vecs + i], w, x[i], q_rows == 1);
        }
    }
    HIDE(at);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        CAT(deal_, DTYPE)(sum + INDEX(h, q_rows) * vecs, vecs, true);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        UNROLL_FOR (int i = 0; i < vecs; i++)
            v_store(acc + h * acc_stride + at + in + i * VL,
                    CAT(unfold_, DTYPE)(sum[INDEX(h, q_rows) * vecs + i]));
}

#define MOST_VECS(q_rows)                      \
    (PV_ACC / (q_rows) < 8 ? PV_ACC / (q_rows) \
                           : 8) /* enough to hide the latency with one query row */

/* Do slices of `vecs` vectors from element `at` on, as long as they fit. Returns the element after
 * them. */
INLINE int CAT(pv_across_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor,
                                  const float *p, const float *rescale, float *acc,
                                  int64_t acc_stride, int at, const int dim, const int q_rows,
                                  const int vecs, const int order)
{
    for (; at + vecs * VL <= dim; at += vecs * VL)
        UNROLL_FOR (int in = 0; in < PACK; in += vecs * VL) /* loads need a constant */
            if (at % PACK == in)
                CAT(pv_slice_, DTYPE)(tile, first, end, cursor, p, rescale, acc, acc_stride,
                                      at - in, in, q_rows, vecs, order);
    return at;
}

/* Do all of D for `q_rows` query rows from `q_row` on. D is a multiple of the widest slices, unless
 * `ragged`. Rows are taken a run at a time if the next run is touched meanwhile, or if rows in
 * address order have several slices. */
INLINE void CAT(pv_some_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                 int q_row, const int q_rows, const bool ragged, const int order)
{
    const int most = MOST_VECS(q_rows), dim = (group->v_dim + VL - 1) / VL * VL;
    const int64_t acc_stride = group->v_pad;
    prefetch cursor = PREFETCH(&tile->v, group->v_dim);
    float *acc = group->acc + q_row * acc_stride;
    const float *rescale = group->rescale + q_row;
    const bool by_runs = order == ORDER_RUNS || (order == ORDER_ROWS && dim > most * VL);
    const int run = by_runs ? (int)tile->v.schedule->run_rows : TILE;
    p += q_row * QUERY_SCORES;
    if (order < ORDER_ROWS && !ragged) { /* one run */
        CAT(pv_across_, DTYPE)(tile, tile->lead, tile->count, &cursor, p, rescale, acc, acc_stride,
                               0, dim, q_rows, most, order);
        return;
    }
    for (int first = tile->lead, end; first < tile->count; first = end) {
        prefetch_of(&cursor, tile, &tile->v, first, order);
        end = (int)at_most(first + run, tile->count);
        int at = CAT(pv_across_, DTYPE)(tile, first, end, &cursor, p, rescale, acc, acc_stride, 0,
                                        dim, q_rows, most, order);
        if (ragged && most > 4)
            at = CAT(pv_across_, DTYPE)(tile, first, end, &cursor, p, rescale, acc, acc_stride, at,
                                        dim, q_rows, 4, order);
        if (ragged && most > 2)
            at = CAT(pv_across_, DTYPE)(tile, first, end, &cursor, p, rescale, acc, acc_stride, at,
                                        dim, q_rows, 2, order);
        if (ragged)
            CAT(pv_across_, DTYPE)(tile, first, end, &cursor, p, rescale, acc, acc_stride, at, dim,
                                   q_rows, 1, order);
        rescale = ones;
    }
}

/* One function for all orders, because ragged D are rare. It is not inlined, so it takes no
 * registers from the others. */
static NOINLINE void CAT(pv_ragged_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                            const float *p, int q_row, int q_rows, int order)
{
    if (q_rows == 1)
        CAT(pv_some_, DTYPE)(tile, group, p, q_row, 1, true, order);
    else if (q_rows == 2)
        CAT(pv_some_, DTYPE)(tile, group, p, q_row, 2, true, order);
    else if (q_rows == 4)
        CAT(pv_some_, DTYPE)(tile, group, p, q_row, 4, true, order);
    else
        CAT(pv_some_, DTYPE)(tile, group, p, q_row, PV_MOST, true, order);
}

/* A pass that does not prefetch, for the query rows that share a load of a row. */
static NOINLINE void CAT(pv_plain_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                           const float *p, int q_row)
{
    CAT(pv_some_, DTYPE)(tile, group, p, q_row, PV_MOST, false, ORDER_PLAIN);
}

/* Do a tile, in passes of at most PV_MOST query rows. Only the first pass prefetches. */
INLINE void CAT(pv_slices_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                   const int q_rows, const int order)
{
    const int pass = q_rows < PV_MOST ? q_rows : PV_MOST;
    const bool ragged = (group->v_dim + VL - 1) / VL % MOST_VECS(pass);
    if (ragged) {
        for (int q_row = 0; q_row < q_rows; q_row += pass)
            CAT(pv_ragged_, DTYPE)(tile, group, p, q_row, pass, q_row ? ORDER_PLAIN : order);
        return;
    }
    if (pass < PV_MOST || order != ORDER_PLAIN)
        CAT(pv_some_, DTYPE)(tile, group, p, 0, pass, false, order);
    else
        CAT(pv_plain_, DTYPE)(tile, group, p, 0);
    for (int q_row = PV_MOST; q_row < q_rows; q_row += PV_MOST)
        CAT(pv_plain_, DTYPE)(tile, group, p, q_row);
}

#undef MOST_VECS
