/* Weighted sum of the V rows of a tile: slices of D whose accumulators stay in registers for the whole tile, or for a run of
 * its rows; or whole rows, whose sums come from L1 and go back. */

/* heads x vecs vectors of D from element `in` of the block that begins at `at`, of the tokens from `first` to `end`. For
 * every SPAN that begins inside the slice, each token prefetches one line. */
INLINE void CAT(pv_slice_, DTYPE)(const kvb_tile *tile, int first, int end, ahead *cursor, const float *p,
                                  const float *rescale, float *acc, int64_t acc_stride, int at, const int in,
                                  const int heads, const int vecs, const int order)
{
    vf sum[PV_ACC];
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < vecs; i++)
            sum[TURN(h, heads) * vecs + i] =
                INTO_FOLD(v_mul(v_load(acc + h * acc_stride + at + in + i * VL), v_set1(rescale[h])));
#ifdef DEAL
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i + 1 < vecs; i += 2)
            DEAL(sum + TURN(h, heads) * vecs + i);
#endif
    const int width = vecs * VL;
    const kvb_places rows = {tile->v.from + OFFSET(at), tile->v.at};
    const bool starts = width >= SPAN || (at + in) % SPAN == 0;
    for (int t = first; t < end; t++) {
        const uint8_t *row = row_of(tile, rows, t, order);
        if (starts)
            UNROLL for (int l = 0; l < width; l += SPAN)
                ahead_with(cursor, row + OFFSET(in + l), width < LINES_PER_REQUEST * SPAN ? 0 : l / SPAN, order);
#if BLOCK > 1
        if (heads <= 2) { /* scales go to the weights, once for a block's vectors; more heads share values */
            UNROLL for (int i = 0; i < vecs; i++) {
                vf codes = CODES_AT(row, 0, in + i * VL);
                vf scale = v_half(row + OFFSET(in + i * VL));
                UNROLL for (int h = 0; h < heads; h++)
                    v_fma_into(&sum[TURN(h, heads) * vecs + i], v_mul(v_set1(p[h * QUERY_SCORES + t]), scale), codes);
            }
            continue;
        }
#endif
        vf x[PV_ACC];
        CAT(loads_, DTYPE)(row, in, vecs, x);
        UNROLL for (int h = 0; h < heads; h++) {
            vf w = v_set1(p[h * QUERY_SCORES + t]);
            UNROLL for (int i = 0; i < vecs; i++)
                fma_of(&sum[TURN(h, heads) * vecs + i], w, x[i], heads == 1);
        }
    }
#ifdef UNDEAL
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i + 1 < vecs; i += 2)
            UNDEAL(sum + TURN(h, heads) * vecs + i);
#endif
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < vecs; i++)
            v_store(acc + h * acc_stride + at + in + i * VL, UNFOLD(sum[TURN(h, heads) * vecs + i]));
}

/* All of D: slices of 8 vectors at most, which hides the latency of one head's sums, then narrower ones. Rows are taken a run
 * at a time where the next is touched meanwhile, and where several slices of them are to be read one after another. */
INLINE void CAT(pv_heads_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, int head,
                                  const int heads, const int order)
{
    ahead cursor = AHEAD(tile, tile->next.v, group->dim);
    float *acc = group->acc + head * group->dim_pad;
    const float *rescale = group->rescale + head;
    const int dim = (group->dim + VL - 1) / VL * VL, slice = (PV_ACC / heads < 8 ? PV_ACC / heads : 8) * VL;
    const bool sliced = order != ORDER_PLAIN && dim > slice;
    const int rows = (int)tile->schedule->run_rows, run = order == ORDER_RUNS || (sliced && rows) ? rows : TILE;
    p += head * QUERY_SCORES;
    for (int first = tile->lead, end; first < tile->count; first = end) {
        int at = 0;
        ahead_of(&cursor, tile, tile->v, tile->next.v, first, order);
        end = (int)at_most(first + run, tile->count);
#define SLICES(vecs)                                                                                             \
    for (; PV_ACC / heads >= vecs && at + vecs * VL <= dim; at += vecs * VL)                                     \
        UNROLL for (int in = 0; in < BLOCK; in += vecs * VL) /* a constant, as loads want it */                  \
            if (at % BLOCK == in)                                                                                \
                CAT(pv_slice_, DTYPE)(tile, first, end, &cursor, p, rescale, acc, group->dim_pad, at - in, in,   \
                                      heads, PV_ACC / heads >= vecs ? vecs : 1, order);
        SLICES(8)
        SLICES(4)
        SLICES(2)
        SLICES(1)
#undef SLICES
        rescale = ones;
    }
}

#if BLOCK == 1
/* `vecs` vectors of D of one row, into sums that are in memory. */
INLINE void CAT(pv_into_, DTYPE)(const uint8_t *row, int64_t apart, const float *p, float *acc, int64_t acc_stride,
                                 const int heads, const int vecs)
{
    vf x[PV_ACC];
    CAT(loads_, DTYPE)(row, 0, vecs, x);
    UNROLL for (int l = 0; l < vecs * VL; l += heads == 1 && PLAIN ? LINES_PER_REQUEST * SPAN : SPAN)
        kvb_fetch(row + OFFSET(l) + apart, true);
    UNROLL for (int h = 0; h < heads; h++) {
        const vf w = v_set1(p[h * QUERY_SCORES]);
        UNROLL for (int i = 0; i < vecs; i++) {
            float *at = acc + h * acc_stride + i * VL;
            vf sum = v_load(at);
            fma_of(&sum, w, x[i], heads == 1);
            v_store(at, sum);
        }
    }
}

/* Sums as the loads of rows and their FOLD have them, times `rescale`, or back. */
INLINE void CAT(pv_deal_, DTYPE)(const kvb_group *group, const int heads, const bool back)
{
    for (int h = 0; h < heads; h++)
        for (int at = 0; at < group->dim_pad; at += VL) {
            float *to = group->acc + h * group->dim_pad + at;
            v_store(to, back ? UNFOLD(v_load(to)) : INTO_FOLD(v_mul(v_load(to), v_set1(group->rescale[h]))));
        }
#ifdef DEAL
    const int dim = (group->dim + VL - 1) / VL * VL;
    for (int h = 0; h < heads; h++)
        for (int at = 0; at + 2 * VL <= dim; at += 2 * VL) {
            float *to = group->acc + h * group->dim_pad + at;
            vf pair[2] = {v_load(to), v_load(to + VL)};
            if (back)
                UNDEAL(pair);
            else
                DEAL(pair);
            v_store(to, pair[0]);
            v_store(to + VL, pair[1]);
        }
#endif
}

/* Rows whole, as they lie, of one KV head or of several in turn: where registers do not hold the sums of all of D. */
INLINE void CAT(pv_whole_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads)
{
    const int dim = (group->dim + VL - 1) / VL * VL;
    const uint8_t *row = tile->v.from;
    for (int64_t h = 0; h < tile->schedule->kv_heads; h++)
        CAT(pv_deal_, DTYPE)(group + h, heads, false);
    for (int t = 0; t < tile->count; t++)
        for (int64_t h = 0; h < tile->schedule->kv_heads; h++, row += tile->stride) {
            const float *weight = p + h * HEAD_SCORES + t;
            float *acc = group[h].acc;
            int at = 0;
#define SLICES(vecs)                                                                                               \
    for (; PV_ACC / heads >= vecs && at + vecs * VL <= dim; at += vecs * VL)                                       \
        CAT(pv_into_, DTYPE)(row + OFFSET(at), tile->schedule->distance, weight, acc + at, group->dim_pad, heads,               \
                             PV_ACC / heads >= vecs ? vecs : 1);
            SLICES(8)
            SLICES(4)
            SLICES(2)
            SLICES(1)
#undef SLICES
        }
    for (int64_t h = 0; h < tile->schedule->kv_heads; h++)
        CAT(pv_deal_, DTYPE)(group + h, heads, true);
}
APART_OF(pv_whole, 1, const float)
APART_OF(pv_whole, 2, const float)

#if ROW_HEADS > 2
/* Four heads, whole rows of `vecs` vectors: what registers do not hold of the sums, a fifth at most, compilers keep in L1. */
INLINE void CAT(pv_four_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, const int vecs)
{
    const int64_t stride = tile->stride, apart = tile->schedule->distance, pad = group->dim_pad;
    const uint8_t *row = tile->v.from;
    vf sum[2 * PV_ACC];
    UNROLL for (int h = 0; h < 4; h++)
        UNROLL for (int i = 0; i < vecs; i++)
            sum[h * vecs + i] = v_mul(v_load(group->acc + h * pad + i * VL), v_set1(group->rescale[h]));
    for (int t = 0; t < tile->count; t++, row += stride) {
        vf w[4];
        UNROLL for (int h = 0; h < 4; h++)
            w[h] = v_set1(p[h * QUERY_SCORES + t]);
        UNROLL for (int i = 0; i < vecs; i++) {
            if (i % LINES_PER_REQUEST == 0)
                kvb_fetch(row + OFFSET(i * VL) + apart, true);
            vf x = LOAD(row, 0, i * VL);
            UNROLL for (int h = 0; h < 4; h++)
                v_fma_into(&sum[h * vecs + i], w[h], x);
        }
    }
    UNROLL for (int h = 0; h < 4; h++)
        UNROLL for (int i = 0; i < vecs; i++)
            v_store(group->acc + h * pad + i * VL, sum[h * vecs + i]);
}

/* Longer rows, or those of several KV heads in turn: all sums in L1, rows of two tokens side by side, so that each is stored
 * once for both, and lines asked for in the order of addresses all the same. */
INLINE void CAT(pv_pairs_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads)
{
    const int64_t stride = tile->stride, next = tile->schedule->kv_heads * stride, pad = group->dim_pad;
    const uint8_t *row = tile->v.from, *line = row + tile->schedule->distance;
    for (int64_t h = 0; h < tile->schedule->kv_heads; h++)
        CAT(pv_deal_, DTYPE)(group + h, heads, false);
    for (int t = 0; t < tile->count; t += 2, row += next)
        for (int64_t h = 0; h < tile->schedule->kv_heads; h++, row += stride) {
            const float *weights = p + h * HEAD_SCORES + t;
            vf w[8];
            UNROLL for (int i = 0; i < heads * 2; i++)
                w[i] = v_set1(weights[i / 2 * QUERY_SCORES + i % 2]);
            for (int64_t at = 0; at < pad; at += VL, line += 2 * LINE) {
                float *acc = group[h].acc + at;
                vf x[2];
                UNROLL for (int r = 0; r < 2; r++) {
                    kvb_fetch(line + r * LINE, true);
                    x[r] = LOAD(row + r * next + OFFSET(at), 0, 0);
                }
                UNROLL for (int i = 0; i < heads; i++) {
                    vf sum = v_load(acc + i * pad);
                    UNROLL for (int r = 0; r < 2; r++)
                        v_fma_into(&sum, w[2 * i + r], x[r]);
                    v_store(acc + i * pad, sum);
                }
            }
        }
}
APART_OF(pv_pairs, 4, const float)
#endif
#endif

INLINE void CAT(pv_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads,
                                 const int order)
{
#if BLOCK == 1
    /* more sums than a slice keeps; those of two heads go through L1 only where a vector is a line: twice the stores cost more */
    const bool many = group->dim > 8 * VL && (heads == 1 || VL == LANES);
#if ROW_HEADS > 2
    if (order == ORDER_ROWS && heads == 4) {
        if (tile->schedule->kv_heads > 1 || many) {
            CAT(pv_pairs4_, DTYPE)(tile, group, p);
            return;
        }
        switch ((group->dim + VL - 1) / VL) { /* shorter rows are a slice */
        case 5: CAT(pv_four_, DTYPE)(tile, group, p, 5); return;
        case 6: CAT(pv_four_, DTYPE)(tile, group, p, 6); return;
        case 7: CAT(pv_four_, DTYPE)(tile, group, p, 7); return;
        case 8: CAT(pv_four_, DTYPE)(tile, group, p, 8); return;
        }
    }
#endif
    if (order == ORDER_ROWS && heads <= FEW_HEADS && (tile->schedule->kv_heads > 1 || many)) {
        (heads == 1 ? CAT(pv_whole1_, DTYPE) : CAT(pv_whole2_, DTYPE))(tile, group, p);
        return;
    }
#endif
    const int pass = heads < PV_HEADS ? heads : PV_HEADS;
    UNROLL for (int h = 0; h < heads; h += pass)
        CAT(pv_heads_, DTYPE)(tile, group, p, h, pass, h == 0 ? order : ORDER_PLAIN);
}

STAGE(pv, DTYPE, const float, BLOCK == 1 ? ROW_HEADS : NEVER, ROW_HEADS + 1)
