/* PV of dot for rows of DTYPE: i8 and packed. Weights times scales are first rounded to bytes: for
 * i8 once for a tile (its weights already include the scales), for packs once for each slice.
 *
 *   codes of  | a0 a1 ... |  v_quads   | a0 b0 c0 d0 | a1 b1 c1 d1 | ...   x[0] to x[3]
 *   rows      | b0 b1 ... |    ->
 *   t to t+3  | c0 c1 ... |            | wa wb wc wd | wa wb wc wd | ...   v_weights
 *             | d0 d1 ... |
 *
 * A lane has four tokens of one element, and x has VB elements. v_weights are the same for a whole
 * pack. The product of both is added to sum[h][j]; v_unquad puts lanes in order. */

/* A slice is VB elements of a row, or the pack that they are in. */
#define SLICE (PACK > VB ? PACK : VB)
#define NTH_PACKS (PACK == 1 ? 1 : DOT_PACKS) /* packs in one vector of codes */

/* Make the weights of query rows from `q_row` on, as bytes. For packed rows: times the scales of
 * the packs that a vector has from element `at` on. A NaN counts as 0. */
INLINE void CAT(dot_weights_, DTYPE)(dot_weights *w, const kvb_tile *tile, const float *p, int at,
                                     int dim, int q_row, const int q_rows)
{
    const int end = (int)round_up(tile->count, LANES);
    float weighted[TILE];
#if PACK > 1
    uint16_t scales[NTH_PACKS][TILE];
    const uint8_t *from = tile->v.rows.from + OFFSET(at);
    const int64_t next = at + 32 < dim ? ELEMENT : 0; /* the last pack is read twice */
    for (int t = 0; t < end; t++)
        UNROLL_FOR (int nth = 0; nth < NTH_PACKS; nth++)
            memcpy(scales[nth] + t, from + tile->v.rows.at[t] + nth * next, sizeof **scales);
    KEEP_IN_MEMORY(scales);
#else
    (void)at, (void)dim;
#endif
    for (int i = 0; i < NTH_PACKS * q_rows; i++) {
        const int nth = i / q_rows, h = q_row + i % q_rows;
        vf largest = v_zero(), total = v_zero();
        for (int t = 0; t < end; t += VL) {
            vf x = v_load(p + h * QUERY_SCORES + t);
#if PACK > 1
            x = v_mul(x, v_load_f16((const uint8_t *)(scales[nth] + t)));
#endif
            x = v_number(x);
            v_store(weighted + t, x);
            largest = v_max(largest, v_abs(x));
        }
        const float most = v_hmax(largest);
        const vf inverse = v_set1(dot_steps(DOT_WEIGHT, most));
        for (int t = 0; t < end; t += VL) {
            vf whole = v_round(v_mul(v_load(weighted + t), inverse));
            v_store_i8((uint8_t *)w->bytes[nth][h] + t, whole);
            total = v_add(total, whole);
        }
        w->step[nth][h] = most / DOT_WEIGHT;
        w->first[nth][h] = BIAS ? -BIAS * v_hsum(total) : 0.0f;
    }
}

/* Load the codes of one slice of four rows, the four codes of an element side by side: slice number
 * `slice` from element `at` on. */
INLINE void CAT(dot_quads_, DTYPE)(const uint8_t *const *rows, int at, int dim, const int slice,
                                   vi *x)
{
#if PACK > 1
    vi codes[4][DOT_VECS];
    (void)slice;
    const int next = at + 32 < dim ? ELEMENT : 0;
    UNROLL_FOR (int i = 0; i < 4; i++)
        PACKED_CODES(rows[i] + OFFSET(at), rows[i] + OFFSET(at) + next, codes[i]);
    UNROLL_FOR (int v = 0; v < DOT_VECS; v++) {
        const vi own[4] = {codes[0][v], codes[1][v], codes[2][v], codes[3][v]};
        v_quads(own, x + 4 * v);
    }
#else
    (void)dim;
    const vi own[4] = {v_load_bytes((const int8_t *)rows[0] + at + slice * VB),
                       v_load_bytes((const int8_t *)rows[1] + at + slice * VB),
                       v_load_bytes((const int8_t *)rows[2] + at + slice * VB),
                       v_load_bytes((const int8_t *)rows[3] + at + slice * VB)};
    v_quads(own, x);
#endif
}

/* Do `slices` slices of the rows from `first` to `end`, four rows at a time. A lane has one
 * element. / */
INLINE void CAT(pv_slice_dot_, DTYPE)(const kvb_tile *tile, int first, int end,
                                      const kvb_group *group, prefetch *cursor,
                                      const dot_weights *weights, const float *rescales, int q_row,
                                      int at, const int q_rows, const int slices, const int order)
{
    enum { VECS = SLICE / VB };
    vi sum[4 * PV_ACC];
    UNROLL_FOR (int i = 0; i < slices * q_rows * VECS * 4; i++)
        sum[i] = v_none();
    for (int t = first; t < end; t += 4) {
        if (order != ORDER_ROWS && at % SPAN == 0) /* prefetch before rows occupy registers */
            UNROLL_FOR (int i = 0; i < 4; i++)
                prefetch_line(cursor, order);
        const uint8_t *rows[4];
        UNROLL_FOR (int i = 0; i < 4; i++)
            rows[i] = row_of(&tile->v, t + i, order);
        if (order == ORDER_ROWS)
            UNROLL_FOR (int i = 0; i < 4 * slices; i++)
                prefetch_with(cursor, rows[i / slices] + at + i % slices * VB, i, order);
        UNROLL_FOR (int s = 0; s < slices; s++) {
            vi x[4 * VECS];
            CAT(dot_quads_, DTYPE)(rows, at, group->v_dim, s, x);
            UNROLL_FOR (int h = 0; h < q_rows; h++) {
                vi *own = sum + (INDEX(s, slices) * q_rows + INDEX(h, q_rows)) * 4 * VECS;
                UNROLL_FOR (int j = 0; j < 4 * VECS; j++) {
                    const vi w = v_weights(weights->bytes[0][q_row + h] + t,
                                           weights->bytes[NTH_PACKS - 1][q_row + h] + t, j);
                    if (BIAS)
                        v_dot_codes_into(&own[j], x[j], w, true);
                    else
                        v_dot_weights_into(&own[j], w, x[j]);
                }
            }
        }
    }
    UNROLL_FOR (int i = 0; i < slices * q_rows * VECS; i++) {
        const int h = i / VECS % q_rows, from = at + i / VECS / q_rows * SLICE + i % VECS * VB;
        const vi *own = sum + INDEX(i, slices * q_rows * VECS) * 4;
        const vf rescale = v_set1(rescales[q_row + h]);
        float *to = group->acc + (q_row + h) * group->v_pad + from;
        vf found[4];
        UNROLL_FOR (int j = 0; j < 4; j++)
            found[j] = v_floats(own[j]);
        v_unquad(found);
        UNROLL_FOR (int j = 0; j < 4; j++)
            if (from + j * VL < group->v_pad) {
                const int nth = j * VL / 32 % NTH_PACKS;
                const vf whole =
                    BIAS ? v_add(found[j], v_set1(weights->first[nth][q_row + h])) : found[j];
                v_store(to + j * VL, v_fma(whole, v_set1(weights->step[nth][q_row + h]),
                                           v_mul(v_load(to + j * VL), rescale)));
            }
    }
}

/* Do a tile for `q_rows` query rows from `q_row` on. */
INLINE void CAT(pv_some_dot_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                     dot_weights *weights, int q_row, const int q_rows,
                                     const int order)
{
    const int end = (int)round_up(tile->count, LANES),
              run = order == ORDER_RUNS ? (int)tile->v.schedule->run_rows : TILE;
    prefetch cursor = PREFETCH(&tile->v, group->v_dim);
    const float *rescale = group->rescale;
    if (PACK == 1)
        CAT(dot_weights_, DTYPE)(weights, tile, p, 0, group->v_dim, q_row, q_rows);
    for (int first = 0; first < end; first += run, rescale = ones) {
        const int last = (int)at_most(first + run, tile->count);
        int at = 0;
        prefetch_of(&cursor, tile, &tile->v, first, order);
#define SLICES(slices)                                                                            \
    for (; at + (slices - 1) * SLICE < group->v_dim; at += slices * SLICE) {                      \
        if (PACK > 1)                                                                             \
            CAT(dot_weights_, DTYPE)(weights, tile, p, at, group->v_dim, q_row, q_rows);          \
        CAT(pv_slice_dot_, DTYPE)(tile, first, last, group, &cursor, weights, rescale, q_row, at, \
                                  q_rows, slices, order);                                         \
    }
        if (order == ORDER_ROWS && q_rows == 1)
            SLICES(4)
        if (order == ORDER_ROWS)
            SLICES(2)
        SLICES(1)
#undef SLICES
    }
}

/* Do a tile. Only the first query rows prefetch. */
INLINE void CAT(pv_dot_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                     const int q_rows, const int order)
{
    enum { MOST = SLICE_SUMS / (SLICE / VB) };
    const int pass = q_rows < MOST ? q_rows : MOST;
    dot_weights weights;
    if (order != ORDER_PLAIN)
        CAT(pv_some_dot_, DTYPE)(tile, group, p, &weights, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
        CAT(pv_some_dot_, DTYPE)(tile, group, p, &weights, h, pass, ORDER_PLAIN);
}

#undef SLICE
#undef NTH_PACKS
