/* PV by slices of D. Any dtype, tier and group class, and rows in any order: each order is compiled by itself.
 *
 *           D ->  |<- a slice ->|
 *   row t         | x0 | x1 |...|      vectors of VL elements, at most 8, times heads at most PV_ACC
 *   row t+1       | x0 | x1 |...|      sum[h][i] += p[h][t] * x[i]: they stay in registers for a run of rows,
 *   ...                |               which most often are all of the tile; then the next slice of the same rows
 *                      v
 */

/* heads x vecs vectors of D from element `in` of the pack that begins at `at`, of the tokens from `first` to `end`. For
 * every SPAN that begins inside the slice, each token prefetches one line. */
INLINE void CAT(pv_slice_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor, const float *p,
                                  const float *rescale, float *acc, int64_t acc_stride, int at, const int in,
                                  const int heads, const int vecs, const int order)
{
    vf sum[PV_ACC];
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < vecs; i++)
            sum[INDEX(h, heads) * vecs + i] =
                CAT(fold_, DTYPE)(v_mul(v_load(acc + h * acc_stride + at + in + i * VL), v_set1(rescale[h])));
    UNROLL for (int h = 0; h < heads; h++)
        CAT(deal_, DTYPE)(sum + INDEX(h, heads) * vecs, vecs, false);
    const int width = vecs * VL;
    const kvb_places rows = {tile->v.from + OFFSET(at), tile->v.at};
    const bool starts = width >= SPAN || (at + in) % SPAN == 0;
    for (int t = first; t < end; t++) {
        const uint8_t *row = row_of(tile, rows, t, order);
        if (starts)
            UNROLL for (int l = 0; l < width; l += SPAN)
                prefetch_with(cursor, row + OFFSET(in + l), width < LINES_PER_REQUEST * SPAN ? 0 : l / SPAN, order);
#if PACK > 1
        if (heads <= 2) { /* scales go to the weights, once for a pack's vectors; more heads share values */
            UNROLL for (int i = 0; i < vecs; i++) {
                vf codes = CODES(row, in + i * VL);
                vf scale = v_half(row + OFFSET(in + i * VL));
                UNROLL for (int h = 0; h < heads; h++)
                    v_fma_into(&sum[INDEX(h, heads) * vecs + i], v_mul(v_set1(p[h * QUERY_SCORES + t]), scale), codes);
            }
            continue;
        }
#endif
        vf x[PV_ACC];
        CAT(load_row_, DTYPE)(row, in, vecs, x);
        UNROLL for (int h = 0; h < heads; h++) {
            vf w = v_set1(p[h * QUERY_SCORES + t]);
            UNROLL for (int i = 0; i < vecs; i++)
                fma_of(&sum[INDEX(h, heads) * vecs + i], w, x[i], heads == 1);
        }
    }
    UNROLL for (int h = 0; h < heads; h++)
        CAT(deal_, DTYPE)(sum + INDEX(h, heads) * vecs, vecs, true);
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < vecs; i++)
            v_store(acc + h * acc_stride + at + in + i * VL, CAT(unfold_, DTYPE)(sum[INDEX(h, heads) * vecs + i]));
}

#define MOST_VECS(heads) (PV_ACC / (heads) < 8 ? PV_ACC / (heads) : 8) /* which hides the latency of one head's sums */

/* The widest slices. Returns the element behind them. */
INLINE int CAT(pv_wide_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor, const float *p,
                                const float *rescale, const kvb_group *group, float *acc, const int heads,
                                const int order)
{
    const int dim = (group->dim + VL - 1) / VL * VL, width = MOST_VECS(heads) * VL;
    int at = 0;
    for (; at + width <= dim; at += width)
        UNROLL for (int in = 0; in < PACK; in += width) /* a constant, as loads want it */
            if (at % PACK == in)
                CAT(pv_slice_, DTYPE)(tile, first, end, cursor, p, rescale, acc, group->dim_pad, at - in, in, heads,
                                      MOST_VECS(heads), order);
    return at;
}

/* Slices of so many vectors of what of D the widest ones leave. Returns the element behind them. */
INLINE int CAT(pv_narrow_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor, const float *p,
                                  const float *rescale, const kvb_group *group, float *acc, int at, const int heads,
                                  const int vecs, int order)
{
    for (; at + vecs * VL <= round_up(group->dim, VL); at += vecs * VL)
        CAT(pv_slice_, DTYPE)(tile, first, end, cursor, p, rescale, acc, group->dim_pad, at - at % PACK, at % PACK, heads,
                              vecs, order);
    return at;
}

INLINE void CAT(pv_rest_of_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor, const float *p,
                                    const float *rescale, const kvb_group *group, float *acc, int at, const int heads,
                                    int order)
{
    if (MOST_VECS(heads) > 4)
        at = CAT(pv_narrow_, DTYPE)(tile, first, end, cursor, p, rescale, group, acc, at, heads, 4, order);
    if (MOST_VECS(heads) > 2)
        at = CAT(pv_narrow_, DTYPE)(tile, first, end, cursor, p, rescale, group, acc, at, heads, 2, order);
    CAT(pv_narrow_, DTYPE)(tile, first, end, cursor, p, rescale, group, acc, at, heads, 1, order);
}

/* Most often there are none: so one function does for all classes and orders. */
static NOINLINE void CAT(pv_rest_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor, const float *p,
                                          const float *rescale, const kvb_group *group, float *acc, int at, int heads,
                                          int order)
{
    prefetch own = *cursor; /* in registers */
    if (heads == 1)
        CAT(pv_rest_of_, DTYPE)(tile, first, end, &own, p, rescale, group, acc, at, 1, order);
    else if (heads == 2)
        CAT(pv_rest_of_, DTYPE)(tile, first, end, &own, p, rescale, group, acc, at, 2, order);
    else if (heads == 4)
        CAT(pv_rest_of_, DTYPE)(tile, first, end, &own, p, rescale, group, acc, at, 4, order);
    else
        CAT(pv_rest_of_, DTYPE)(tile, first, end, &own, p, rescale, group, acc, at, PV_HEADS, order);
    *cursor = own;
}

/* All of D for `heads` heads from `head` on. Rows are taken a run at a time where the next is touched meanwhile, and where
 * several slices of them are to be read one after another. */
INLINE void CAT(pv_heads_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, int head, const int heads,
                                  const int order)
{
    const kvb_schedule *schedule = tile->schedule;
    prefetch cursor = PREFETCH(tile, tile->next.v, group->dim);
    float *acc = group->acc + head * group->dim_pad;
    const float *rescale = group->rescale + head;
    const bool sliced = order != ORDER_PLAIN && schedule->run_rows && group->dim > MOST_VECS(heads) * VL;
    const int run = order == ORDER_RUNS || sliced ? (int)schedule->run_rows : TILE;
    p += head * QUERY_SCORES;
    for (int first = tile->lead, end; first < tile->count; first = end) {
        prefetch_of(&cursor, tile, tile->v, tile->next.v, first, order);
        end = (int)at_most(first + run, tile->count);
        const int at = CAT(pv_wide_, DTYPE)(tile, first, end, &cursor, p, rescale, group, acc, heads, order);
        if (at < group->dim)
            CAT(pv_rest_, DTYPE)(tile, first, end, &cursor, p, rescale, group, acc, at, heads, order);
        rescale = ones;
    }
}

/* As many heads as share a row, of more; or those that ask for nothing. */
static NOINLINE void CAT(pv_plain_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, int head)
{
    CAT(pv_heads_, DTYPE)(tile, group, p, head, PV_HEADS, ORDER_PLAIN);
}

/* Only the first heads prefetch. */
INLINE void CAT(pv_slices_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads,
                                   const int order)
{
    if (heads < PV_HEADS || order != ORDER_PLAIN)
        CAT(pv_heads_, DTYPE)(tile, group, p, 0, heads < PV_HEADS ? heads : PV_HEADS, order);
    else
        CAT(pv_plain_, DTYPE)(tile, group, p, 0);
    for (int head = PV_HEADS; head < heads; head += PV_HEADS)
        CAT(pv_plain_, DTYPE)(tile, group, p, head);
}
