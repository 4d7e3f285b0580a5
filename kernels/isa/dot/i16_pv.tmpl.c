/* PV of dot by products of 16-bit numbers, of i8 rows: AVX2. Weights of a tile are rounded first.
 *
 *   rows t, t+1   | a0 b0 | a1 b1 | ...     an element of one beside that of the other, widened
 *   weights       | wa wb | wa wb | ...     sum[h][i] grows by wa a0 + wb b0 in a lane */

/* Two rows at a time, an element of one beside that of the other: their products with two weights are added at once. */
INLINE void pv_slice_dot_i8(const kvb_tile *tile, int first, int end, prefetch *cursor, const int16_t *weights,
                            const float *step, const float *rescale, float *acc, int64_t acc_stride, int at,
                            const int heads, const int vecs, const int order)
{
    vi sum[PV_ACC];
    UNROLL for (int i = 0; i < heads * vecs; i++)
        sum[i] = v_none();
    const bool starts = vecs * VL >= LINE || at % LINE == 0;
    for (int t = first; t < end; t += 2) {
        if (starts)
            UNROLL for (int l = 0; l < 2 * ((vecs * VL + LINE - 1) / LINE); l++)
                prefetch_line(cursor, order);
        vi x[PV_ACC];
        UNROLL for (int i = 0; i < vecs; i++)
            x[i] = v_code_pairs(kvb_row_at(tile->v, t) + at + i * VL, kvb_row_at(tile->v, t + 1) + at + i * VL);
        UNROLL for (int h = 0; h < heads; h++) {
            vi w = dot_four(weights + h * TILE + t);
            UNROLL for (int i = 0; i < vecs; i++)
                v_dot_i16_into(&sum[INDEX(h, heads) * vecs + INDEX(i, vecs)], x[i], w);
        }
    }
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < vecs; i++) {
            float *to = acc + h * acc_stride + at + i * VL;
            vf old = v_mul(v_load(to), v_set1(rescale[h]));
            v_store(to, v_fma(v_floats(sum[INDEX(h, heads) * vecs + INDEX(i, vecs)]), v_set1(step[h]), old));
        }
}

INLINE void pv_heads_dot_i8(const kvb_tile *tile, const kvb_group *group, const int16_t *weights, const float *step,
                           int head, const int heads, const int order)
{
    prefetch cursor = prefetch_from(tile, tile->next.v, group->dim);
    float *acc = group->acc + head * group->dim_pad;
    const float *rescale = group->rescale + head;
    const int dim = (group->dim + VL - 1) / VL * VL, run = order == ORDER_RUNS ? (int)tile->schedule->run_rows : TILE;
    weights += head * TILE;
    step += head;
    for (int first = 0, end; first < tile->count; first = end) {
        int at = 0;
        prefetch_of(&cursor, tile, tile->v, tile->next.v, first, order);
        end = (int)at_most(first + run, tile->count);
#define ACROSS(vecs)                                                                                                    \
    for (; at + vecs * VL <= dim; at += vecs * VL)                                                                      \
        pv_slice_dot_i8(tile, first, end, &cursor, weights, step, rescale, acc, group->dim_pad, at, heads, vecs, order);
        if (DOT_I16 / heads >= 4)
            ACROSS(4)
        if (DOT_I16 / heads >= 2)
            ACROSS(2)
        ACROSS(1)
#undef ACROSS
        rescale = ones;
    }
}

INLINE void pv_tile_dot_i8(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads,
                           const int order)
{
    int16_t weights[HEADS * TILE];
    float step[HEADS];
    const int pass = heads < PV_HEADS ? heads : PV_HEADS, end = (int)round_up(tile->count, LANES);
    for (int h = 0; h < heads; h++) {
        float inverse = dot_weight_steps(p + h * QUERY_SCORES, end, &step[h]);
        for (int t = 0; t < end; t += VL)
            v_store_i16(weights + h * TILE + t, v_mul(v_load(p + h * QUERY_SCORES + t), v_set1(inverse)));
    }
    if (order != ORDER_PLAIN)
        pv_heads_dot_i8(tile, group, weights, step, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < heads; h += pass)
        pv_heads_dot_i8(tile, group, weights, step, h, pass, ORDER_PLAIN);
}
