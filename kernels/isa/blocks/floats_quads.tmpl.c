/* PV by products of bf16, of 8-bit floats whose V is transposed. A quad has one element of four
 * tokens, which are two lanes of words:
 *
 *   quads of a block   | e0: c0 c1 c2 c3       | e1: c0 c1 c2 c3       | ...   16 elements, a line
 *   their words        | e0: x0 x1 | e0: x2 x3 | e1: x0 x1 | e1: x2 x3 | ...   CELL_VECTORS
 *   weights[h]         |     w0 w1 |     w2 w3 |     w0 w1 |     w2 w3 | ...   repeated
 *
 * The products of both are added to sum[h]. Neighbours are added at the end. A square is SIDE
 * elements of LANES tokens: four lines, of four tokens each. Codes of tokens outside the tile may
 * be anything: they are looked up as zero. */

/* Multiply four tokens of one or several squares (lines that are a SQUARE apart) by four weights of
 * each query row. All codes are looked up first, then products take turns. `live`: all bits of a
 * token of the tile, none of another. sum[q_rows][all] */
INLINE void CAT(pvt_quads_, DTYPE)(vf *sum, const uint8_t *line, vi live, const uint16_t *weights,
                                   const vcodes *codes, const int vectors, const int all,
                                   const int q_rows)
{
    vi x[WORDS_AT_ONCE];
    UNROLL_FOR (int v = 0; v < vectors; v += 2) {
        const uint8_t *from = line + v / CELL_VECTORS * SQUARE + v % CELL_VECTORS / 2 * VB;
        floats_looked_up(codes, v_int_and(v_load_bytes((const int8_t *)from), live), x + v);
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vi w = v_set_eight(weights + h * FLOATS_WEIGHTS);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_dot16_into(&sum[INDEX(h, q_rows) * all + v], x[v], w);
    }
}

/* Sum up the squares of a slice, in the blocks from token `first` to `end`: found[q_rows][squares].
 */
INLINE void CAT(pvt_sums_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor,
                                  const floats_quads *quads, int q_row, int64_t at, vf *found,
                                  const int q_rows, const int squares, const int order)
{
    const int all = squares * CELL_VECTORS, some = all < WORDS_AT_ONCE ? all : WORDS_AT_ONCE;
    const vcodes codes = CAT(codes_of_, DTYPE)();
    const uint16_t *weights = quads->weights + q_row * FLOATS_WEIGHTS;
    vf sum[PV_ACC];
    HIDE(at);
    UNROLL_FOR (int i = 0; i < q_rows * all; i++)
        sum[i] = v_zero();
    for (int t = first; t < end; t += LANES) {
        const uint8_t *line = row_of(&tile->v, t, order) + at * LANES;
        UNROLL_NOTHING for (int in = 0; in < LANES; in += 4, line += LINE)
        {
            HIDE(line); /* else the addresses of all lines are kept */
            UNROLL_FOR (int s = 0; s < squares; s++)
                prefetch_with(cursor, line + s * SQUARE, in / 4, order);
            const vi live = dot_four(quads->live + t + in);
            CAT(pvt_quads_, DTYPE)(sum, line, live, weights + t + in, &codes, some, all, q_rows);
            if (all > some) /* the other `some` */
                CAT(pvt_quads_, DTYPE)(sum + some, line + some / CELL_VECTORS * SQUARE, live,
                                       weights + t + in, &codes, some, all, q_rows);
        }
    }
    UNROLL_FOR (int i = 0; i < q_rows * all; i += 2)
        found[i / 2] = v_neighbours(sum[i], sum[i + 1]);
}

/* Add `squares` squares from element `at` on to the accumulators. */
INLINE void CAT(pvt_slice_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor,
                                   const kvb_group *group, const floats_quads *quads,
                                   const float *rescales, int q_row, int at, const int q_rows,
                                   const int squares, const int order)
{
    const int vectors = squares * (LANES / VL);
    vf found[PV_ACC / 2];
    CAT(pvt_sums_, DTYPE)(tile, first, end, cursor, quads, q_row, at, found, q_rows, squares,
                          order);
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        float *to = group->acc + (q_row + h) * group->v_pad + at;
        const vf rescale = v_set1(rescales[q_row + h]);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_store(to + v * VL,
                    v_fma(v_load(to + v * VL), rescale, found[INDEX(h, q_rows) * vectors + v]));
    }
}

/* Do a tile for `q_rows` query rows from `q_row` on. */
INLINE void CAT(pvt_some_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                  const floats_quads *quads, int q_row, const int q_rows,
                                  const int order)
{
    const int run = order == ORDER_RUNS ? (int)tile->v.schedule->run_rows : TILE,
              end = (int)round_up(tile->count, LANES), most = QUAD_SUMS / q_rows;
    prefetch cursor = prefetch_block(&tile->v);
    const float *rescale = group->rescale;
    for (int first = 0, last; first < end; first = last, rescale = ones) {
        last = (int)at_most(first + run, end);
        int at = 0;
        prefetch_of(&cursor, tile, &tile->v, first, order);
#define SLICES(squares)                                                                      \
    for (; at + (squares) * SIDE <= group->v_pad; at += (squares) * SIDE)                    \
        CAT(pvt_slice_, DTYPE)(tile, first, last, &cursor, group, quads, rescale, q_row, at, \
                               q_rows, squares, order);
        if (most >= 8)
            SLICES(8)
        if (most >= 4)
            SLICES(4)
        if (most >= 2)
            SLICES(2)
        SLICES(1)
#undef SLICES
    }
}

/* Do a tile, in passes of at most QUAD_SUMS query rows. Only the first pass prefetches. */
INLINE void CAT(pvt_floats_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                         const float *p, const int q_rows, const int order)
{
    const int pass = q_rows < QUAD_SUMS ? q_rows : QUAD_SUMS;
    floats_quads quads;
    floats_quads_of(tile, p, q_rows, &quads);
    if (order != ORDER_PLAIN)
        CAT(pvt_some_, DTYPE)(tile, group, &quads, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
        CAT(pvt_some_, DTYPE)(tile, group, &quads, h, pass, ORDER_PLAIN);
}
