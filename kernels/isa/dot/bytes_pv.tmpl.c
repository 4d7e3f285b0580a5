/* PV by products of bytes, of i8 rows. Weights of a tile are rounded to bytes first.
 *
 *   rows      | a0 a1 ... |  v_quads   | a0 b0 c0 d0 | a1 b1 c1 d1 | ...    four tokens of an element are a lane
 *   t to t+3  | b0 b1 ... |    ->      x[0] to x[3]: VB elements
 *             | c0 c1 ... |            | wa wb wc wd | wa wb wc wd | ...    dot_four, the same in all lanes
 *             | d0 d1 ... |            sum[h][j] grows by the product of both; v_unquad puts lanes in order */

/* A tile's weights of each head as bytes. */
typedef struct dot_weights {
    uint8_t bytes[HEADS * TILE];
    float step[HEADS], inverse[HEADS];
    int32_t first[HEADS]; /* what the sums of a run of rows begin with */
} dot_weights;

/* Those of a run, of heads from `head` on. */
INLINE void dot_weights_of(dot_weights *w, const float *p, int first, int end, int head, const int heads)
{
    for (int h = head; h < head + heads; h++) {
        const vf inverse = v_set1(w->inverse[h]);
        vf total = v_zero();
        for (int t = first; t < end; t += VL) {
            vf whole = v_round(v_mul(v_load(p + h * QUERY_SCORES + t), inverse));
            v_store_i8(w->bytes + h * TILE + t, whole);
            total = v_add(total, whole);
        }
        float sum = DOT_V_BIAS ? DOT_V_BIAS * v_hsum(total) : 0.0f;
        w->first[h] = sum == sum ? -(int32_t)sum : 0;
    }
}

enum { SLICE_SUMS = PV_ACC / 4 }; /* most heads of a slice */

/* `slices` of VB elements of the rows from `first` to `end`, four rows at a time: each lane takes those of one element. */
INLINE void pv_slice_bytes(const kvb_tile *tile, int first, int end, const kvb_group *group, prefetch *cursor,
                           const dot_weights *weights, const float *rescales, int head, int at, const int heads,
                           const int slices, const int order)
{
    vi sum[4 * PV_ACC];
    UNROLL for (int h = 0; h < slices * heads; h++)
        UNROLL for (int i = 0; i < 4; i++)
            sum[INDEX(h, slices * heads) * 4 + i] = v_set_int(weights->first[head + h % heads]);
    for (int t = first; t < end; t += 4) {
        if (order != ORDER_ROWS && at % LINE == 0) /* cursors before there are rows to keep */
            UNROLL for (int i = 0; i < 4; i++)
                prefetch_line(cursor, order);
        const uint8_t *rows[4];
        UNROLL for (int i = 0; i < 4; i++)
            rows[i] = row_of(tile, tile->v, t + i, order);
        if (order == ORDER_ROWS)
            UNROLL for (int i = 0; i < 4 * slices; i++)
                prefetch_with(cursor, rows[i / slices] + at + i % slices * VB, i, order);
        UNROLL for (int s = 0; s < slices; s++) {
            vi x[4];
            v_quads(rows, at + s * VB, x);
            UNROLL for (int h = 0; h < heads; h++) {
                vi w = dot_four(weights->bytes + (head + h) * TILE + t);
                vi *own = sum + (INDEX(s, slices) * heads + INDEX(h, heads)) * 4;
                UNROLL for (int j = 0; j < 4; j++)
                    v_dot_weights_into(&own[j], w, x[j]);
            }
        }
    }
    UNROLL for (int i = 0; i < slices * heads; i++) {
        const int h = i % heads, from = at + i / heads * VB;
        const vi *own = sum + INDEX(i, slices * heads) * 4;
        vf found[4], step = v_set1(weights->step[head + h]), rescale = v_set1(rescales[head + h]);
        float *to = group->acc + (head + h) * group->dim_pad + from;
        UNROLL for (int j = 0; j < 4; j++)
            found[j] = v_floats(own[j]);
        v_unquad(found);
        UNROLL for (int j = 0; j < 4; j++)
            if (from + j * VL < group->dim_pad)
                v_store(to + j * VL, v_fma(found[j], step, v_mul(v_load(to + j * VL), rescale)));
    }
}

/* Of so many heads, from `head` on. */
INLINE void pv_heads_bytes(const kvb_tile *tile, const kvb_group *group, const float *p, dot_weights *weights, int head,
                           const int heads, const int order)
{
    const int end = (int)round_up(tile->count, LANES), run = order == ORDER_RUNS ? (int)tile->schedule->run_rows : TILE;
    prefetch cursor = prefetch_from(tile, tile->next.v, group->dim);
    const float *rescale = group->rescale;
    for (int first = 0; first < end; first += run, rescale = ones) {
        const int last = (int)at_most(first + run, end);
        int at = 0;
        dot_weights_of(weights, p, first, last, head, heads);
        prefetch_of(&cursor, tile, tile->v, tile->next.v, first, order);
#define SLICES(slices)                                                                                            \
    for (; at + (slices - 1) * VB < group->dim; at += slices * VB)                                                \
        pv_slice_bytes(tile, first, at_most(last, tile->count), group, &cursor, weights, rescale, head, at, heads, \
                       slices, order);
        if (order == ORDER_ROWS && heads == 1)
            SLICES(4)
        if (order == ORDER_ROWS)
            SLICES(2)
        SLICES(1)
#undef SLICES
    }
}

/* Only the first heads prefetch. */
INLINE void pv_tile_dot_i8(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads,
                          const int order)
{
    const int pass = heads < SLICE_SUMS ? heads : SLICE_SUMS;
    dot_weights weights;
    const int padded = (int)round_up(tile->count, LANES);
    for (int h = 0; h < heads; h++)
        weights.inverse[h] = dot_weight_steps(p + h * QUERY_SCORES, padded, &weights.step[h]);
    if (order != ORDER_PLAIN)
        pv_heads_bytes(tile, group, p, &weights, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < heads; h += pass)
        pv_heads_bytes(tile, group, p, &weights, h, pass, ORDER_PLAIN);
}

