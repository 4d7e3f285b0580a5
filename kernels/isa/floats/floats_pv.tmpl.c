/* PV by products of bf16: a lane has one element of two rows.
 *
 *   rows      | a0 a1 ... |  zipped  | a0 b0 | a1 b1 | ...     two vectors, of 8-bit floats after
 *   t, t + 1  | b0 b1 ... |    ->    | wa wb | wa wb | ...     their codes were looked up
 *
 * The products of both are added to sum[h]. A part is PW elements, with two vectors of sums. At the
 * end, the sums of BLOCK parts are put in the order of a row. */

/* Parts whose sums are put in order together, and their elements. */
#define BLOCK (2 / ELEMENT)
#define BLOCK_ELEMENTS (BLOCK * PW)

/* Zip two rows from byte `at` on: part `part` of a slice. */
INLINE void CAT(floats_zip_, DTYPE)(const uint8_t *a, const uint8_t *b, const int part,
                                    const vcodes *codes, vi *to)
{
    const int at = part / BLOCK * VB;
    const vi x = v_load_bytes((const int8_t *)a + at), y = v_load_bytes((const int8_t *)b + at);
#if ELEMENT == 1
    floats_looked_up(codes, v_zip_bytes(x, y, part % BLOCK), to);
#else
    (void)codes;
    to[0] = v_zip_words(x, y, false);
    to[1] = v_zip_words(x, y, true);
#endif
}

/* Multiply `parts` parts of two rows, from part `in` on, by their weights. */
INLINE void CAT(pv_floats_step_, DTYPE)(vf *sum, const uint8_t *a, const uint8_t *b,
                                        const uint16_t *weights, const vcodes *codes, const int in,
                                        const int q_rows, const int parts)
{
    vi x[2 * FLOATS_PARTS];
    UNROLL_FOR (int p = 0; p < parts; p++)
        CAT(floats_zip_, DTYPE)(a, b, in + p, codes, x + 2 * p);
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vi w = dot_four(weights + h * FLOATS_WEIGHTS);
        UNROLL_FOR (int i = 0; i < 2 * parts; i++)
            v_dot16_into(&sum[INDEX(h, q_rows) * 2 * parts + i], x[i], w);
    }
}

/* Compute the sums of `parts` parts, from part `in` after byte `at` on, of the rows from `first` to
 * `end`: found[q_rows][2 * parts]. */
INLINE void CAT(pv_floats_sums_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor,
                                        const uint16_t *weights, int64_t at, vf *found,
                                        const int in, const int q_rows, const int parts,
                                        const int order)
{
    static const _Alignas(LINE) uint8_t nothing[2 * DIM_MAX];
    const vcodes codes = CAT(codes_of_, DTYPE)();
    const int lines = (parts * VB * ELEMENT / 2 + LINE - 1) / LINE;
    vf sum[PV_ACC];
    HIDE(at);
    UNROLL_FOR (int i = 0; i < q_rows * parts * 2; i++)
        sum[i] = v_zero();
    const bool starts = in == 0 && at % LINE == 0;
    /* the start of the slice in each row, so that addresses have two terms, not three */
    const kvb_side v = {.rows = {tile->v.rows.from + at, tile->v.rows.at}, .bytes = tile->v.bytes};
    int t = first;
    for (; t + 1 < end; t += 2) {
        if (order != ORDER_ROWS && starts)
            UNROLL_FOR (int i = 0; i < 2 * lines; i++)
                prefetch_line(cursor, order);
        const uint8_t *a = row_of(&v, t, order), *b = row_of(&v, t + 1, order);
        if (order == ORDER_ROWS)
            UNROLL_FOR (int i = 0; i < 2 * lines; i++)
                prefetch_with(cursor, (i < lines ? a : b) + i % lines * LINE, 0, order);
        CAT(pv_floats_step_, DTYPE)(sum, a, b, weights + t, &codes, in, q_rows, parts);
    }
    if (t < end) {
        if (order != ORDER_ROWS && starts)
            UNROLL_FOR (int i = 0; i < lines; i++)
                prefetch_line(cursor, order);
        CAT(pv_floats_step_, DTYPE)(sum, row_of(&v, t, order), nothing, weights + t, &codes, in,
                                    q_rows, parts);
    }
    UNROLL_FOR (int i = 0; i < q_rows * parts * 2; i++)
        found[i / (2 * parts) * 2 * FLOATS_PARTS + i % (2 * parts)] = sum[i];
}

/* Add `blocks` blocks from element `at` on to the accumulators. */
INLINE void CAT(pv_floats_slice_, DTYPE)(const kvb_tile *tile, int first, int end, prefetch *cursor,
                                         const kvb_group *group, const uint16_t *weights,
                                         const float *rescales, int q_row, int at, const int q_rows,
                                         const int blocks, const int order)
{
    const int most = PV_ACC / (2 * q_rows), parts = blocks * BLOCK < most ? blocks * BLOCK : most;
    vf found[PV_ACC / 2 * 2 * FLOATS_PARTS];
    weights += q_row * FLOATS_WEIGHTS;
    CAT(pv_floats_sums_, DTYPE)(tile, first, end, cursor, weights, (int64_t)at * ELEMENT, found, 0,
                                q_rows, parts, order);
    /* or half a block: registers do not hold more sums for this many query rows */
    if (blocks * BLOCK > parts)
        CAT(pv_floats_sums_, DTYPE)(tile, first, end, cursor, weights, (int64_t)at * ELEMENT,
                                    found + 2 * parts, parts, q_rows, parts, order);
    for (int i = 0; i < q_rows * blocks; i++) {
        const int h = i / blocks, from = at + i % blocks * BLOCK_ELEMENTS;
        vf *own = found + h * 2 * FLOATS_PARTS + i % blocks * 2 * BLOCK;
        float *to = group->acc + (q_row + h) * group->v_pad + from;
        const vf rescale = v_set1(rescales[q_row + h]);
        if (BLOCK > 1)
            v_unquad(own);
        else
            v_unzip(own);
        UNROLL_FOR (int j = 0; j < 2 * BLOCK; j++)
            if (from + j * VL < group->v_pad)
                v_store(to + j * VL, v_fma(v_load(to + j * VL), rescale, own[j]));
    }
}

/* Do a tile for `q_rows` query rows from `q_row` on. */
INLINE void CAT(pv_floats_some_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                        const uint16_t *weights, int q_row, const int q_rows,
                                        const int order)
{
    const int run = order == ORDER_RUNS ? (int)tile->v.schedule->run_rows : TILE,
              most = PV_ACC / (2 * q_rows) < FLOATS_PARTS ? PV_ACC / (2 * q_rows) : FLOATS_PARTS,
              padded = (int)round_up(group->v_dim, BLOCK_ELEMENTS);
    prefetch cursor = prefetch_from(&tile->v, (int64_t)group->v_dim * ELEMENT);
    const float *rescale = group->rescale;
    for (int first = tile->lead, last; first < tile->count; first = last, rescale = ones) {
        last = (int)at_most(round_up(first + 1, run), tile->count);
        int at = 0;
        prefetch_of(&cursor, tile, &tile->v, first, order);
#define SLICES(blocks)                                                                           \
    for (; at + (blocks) * BLOCK_ELEMENTS <= padded; at += (blocks) * BLOCK_ELEMENTS)            \
        CAT(pv_floats_slice_, DTYPE)(tile, first, last, &cursor, group, weights, rescale, q_row, \
                                     at, q_rows, blocks, order);
        if (most >= 4 * BLOCK)
            SLICES(4)
        if (most >= 2 * BLOCK)
            SLICES(2)
        SLICES(1)
#undef SLICES
    }
}

/* Do a tile, in passes of at most PV_MOST query rows. Only the first pass prefetches. */
INLINE void CAT(pv_floats_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                        const float *p, const int q_rows, const int order)
{
    const int pass = q_rows < PV_MOST ? q_rows : PV_MOST, end = (int)round_up(tile->count, LANES);
    uint16_t weights[Q_ROWS * FLOATS_WEIGHTS];
    floats_weights(tile, p, q_rows, weights);
    for (int h = 0; h < q_rows; h++)
        weights[h * FLOATS_WEIGHTS + end] = 0; /* the last row may have no partner */
    KEEP_IN_MEMORY(weights);
    if (order != ORDER_PLAIN)
        CAT(pv_floats_some_, DTYPE)(tile, group, weights, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
        CAT(pv_floats_some_, DTYPE)(tile, group, weights, h, pass, ORDER_PLAIN);
}
