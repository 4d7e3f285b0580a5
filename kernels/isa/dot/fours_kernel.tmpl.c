/* QK and PV of fours.tmpl.c for DTYPE, with the macros of packs_kernel.tmpl.c. */
#define SCALES CAT(v_scales_, DTYPE)
#define CELLS CAT(v_cells_, DTYPE)
#define QUADS CAT(v_quads_, DTYPE)
#define QUAD_AT CAT(V_QUAD_, DTYPE)

/* Do four packs of `quads` times four rows; acc[q_rows][quads]. */
INLINE void CAT(qk_four_rows_, DTYPE)(vf *acc, kvb_places k, const vpacks *there, prefetch *cursor,
                                      const fours_part *q, const int q_rows, const int quads,
                                      const int order)
{
    UNROLL_FOR (int i = 0; i < quads; i++) {
        fours_prefetch(cursor, 2, order);
        if (q_rows > (order == ORDER_PLAIN ? 2 : 1))
            HIDE(q); /* load q again: registers have no room for all of it */
        const uint8_t *const rows[] = FOUR_ROWS(k, 4 * i);
        vi x[FOURS_CELLS];
        CELLS(rows, there, x);
        const vf scale = v_halves(SCALES(rows, there));
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            vi sum = v_load_ints(q[h].first);
            UNROLL_FOR (int j = 0; j < FOURS_CELLS; j++)
                v_dot_codes_into(&sum, x[j], v_load_bytes(q[h].codes + j * VB), QK_BIAS);
            v_fma_into(&acc[INDEX(h, q_rows) * quads + i], v_mul(scale, v_load(q[h].step)),
                       v_floats(sum));
        }
    }
}

INLINE void CAT(qk_fours_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                       const int q_rows, const int order)
{
    const int quads = QK_ACC / q_rows < 4 ? QK_ACC / q_rows : 4;
    const vpacks all = v_packs_of(true, ELEMENT), rest = v_packs_of(false, ELEMENT);
    prefetch cursor = PREFETCH(&tile->k, group->k_dim);
    for (int t = 0; t < tile->count; t += 4 * quads) {
        const fours_part *q = dot_parts_of(group);
        kvb_places k = kvb_rows_from(tile->k.rows, t);
        vf acc[QK_ACC];
        UNROLL_FOR (int i = 0; i < quads * q_rows; i++)
            acc[i] = v_zero();
        for (int packs = (group->k_dim + 31) / 32; packs > 0; packs -= 4, q += q_rows) {
            CAT(qk_four_rows_, DTYPE)(acc, k, packs >= 4 ? &all : &rest, &cursor, q, q_rows, quads,
                                      order);
            k.from += 4 * ELEMENT;
        }
        UNROLL_FOR (int i = 0; i < quads * q_rows; i += 4) {
            float *to = scores + i / quads * QUERY_SCORES + t;
            const vf sums = v_sums_of_lanes(acc + i);
            if (quads == 4)
                v_store(to, sums);
            else
                v_store_halves(to, to + QUERY_SCORES, sums);
        }
    }
}

/* Make the weights for four packs of the rows up to `end`, which is a multiple of LANES. */
INLINE void CAT(fours_weights_, DTYPE)(fours_weights *w, kvb_places v, const vpacks *there,
                                       const float *p, int end, const int q_rows)
{
    uint16_t scales[4 * TILE];
    vf most[Q_ROWS];
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        most[h] = v_zero();
    for (int t = 0; t < end; t += 4) {
        const uint8_t *const rows[] = FOUR_ROWS(v, t);
        const vhalves halves = SCALES(rows, there);
        const vf scale = v_abs(v_halves(halves));
        v_store_scales(scales + 4 * t, halves);
        UNROLL_FOR (int h = 0; h < q_rows; h++)
            most[h] = v_larger(v_mul(scale, v_fours(p + h * QUERY_SCORES + t)), most[h]);
    }
    fours_bytes(w, scales, most, p, end, q_rows, BIAS);
}

/* Compute the sums of one part of four packs, or of two, from `part` on: found[q_rows][2 parts][4].
 */
INLINE void CAT(pv_four_rows_, DTYPE)(vi *found, const fours_weights *w, int q_row, kvb_places v,
                                      int end, const vpacks *there, prefetch *cursor, bool asks,
                                      const int part, const int parts, const int q_rows,
                                      const int order)
{
    const int each = 4 * parts;
    vi sum[PV_ACC];
    HIDE(v.from);
    UNROLL_FOR (int i = 0; i < q_rows * each; i++)
        sum[i] = v_load_ints(w->first[q_row + i / each]);
    for (int t = 0; t < end; t += 4) {
        const uint8_t *const rows[] = FOUR_ROWS(v, t);
        vi x[2 * 4];
        if (asks)
            fours_prefetch(cursor, parts, order);
        UNROLL_FOR (int n = 0; n < parts; n++)
            QUADS(rows, there, part + n, x + 4 * n);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            const vi own = v_each_of(w->bytes[q_row + h] + 4 * t);
            UNROLL_FOR (int j = 0; j < each; j++) {
                vi *to = &sum[INDEX(h, q_rows) * each + j];
                if (BIAS)
                    v_dot_codes_into(to, x[j], own, true);
                else
                    v_dot_weights_into(to, own, x[j]);
            }
        }
    }
    UNROLL_FOR (int i = 0; i < q_rows * each; i++)
        found[i / each * 8 + part * 4 + i % each] = sum[i];
}

/* Add the sums of a query row to its accumulators from element `at` on, up to the end of the row.
 */
INLINE void CAT(fours_add_, DTYPE)(const vi *found, const fours_weights *w, const kvb_group *group,
                                   int q_row, int at)
{
    const vf step = v_load(w->step[q_row]), rescale = v_set1(group->rescale[q_row]);
    float *to = group->acc + q_row * group->v_pad;
    UNROLL_FOR (int half = 0; half < 2; half++) {
        vf x[4];
        UNROLL_FOR (int i = 0; i < 8; i++)
            if (QUAD_AT(i / 4, i % 4) / 4 == half)
                x[QUAD_AT(i / 4, i % 4) % 4] = v_mul(v_floats(found[i]), step);
        v_unquad(x);
        UNROLL_FOR (int pack = 0; pack < 4; pack++) {
            const int from = at + 32 * pack + 16 * half;
            if (from < group->v_pad)
                v_store(to + from, v_fma(v_load(to + from), rescale, x[pack]));
        }
    }
}

/* Do a tile. Sums of a slice stay in registers: one part for four query rows, or two parts for
 * fewer. The first query rows prefetch: a line for each part of a row. */
INLINE void CAT(pv_fours_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                       const int q_rows, const int order)
{
    const int pass = q_rows < 4 ? q_rows : 4, parts = pass < 4 ? 2 : 1,
              end = (int)round_up(tile->count, LANES);
    const vpacks all = v_packs_of(true, ELEMENT), rest = v_packs_of(false, ELEMENT);
    prefetch cursor = PREFETCH(&tile->v, group->v_dim);
    kvb_places v = tile->v.rows;
    fours_weights w;
    for (int at = 0; at < group->v_dim; at += 128, v.from += 4 * ELEMENT) {
        const vpacks *there = at + 96 < group->v_dim ? &all : &rest;
        CAT(fours_weights_, DTYPE)(&w, v, there, p, end, q_rows);
        for (int h = 0; h < q_rows; h += pass) {
            vi found[4 * 8];
            CAT(pv_four_rows_, DTYPE)(found, &w, h, v, end, there, &cursor, h == 0, 0, parts, pass,
                                      order);
            if (parts == 1)
                CAT(pv_four_rows_, DTYPE)(found, &w, h, v, end, there, &cursor, h == 0, 1, 1, pass,
                                          order);
            for (int i = 0; i < pass; i++)
                CAT(fours_add_, DTYPE)(found + 8 * i, &w, group, h + i, at);
        }
    }
}

FOURS_STAGE(qk, k, float)
FOURS_STAGE(pv, v, const float)

#undef SCALES
#undef CELLS
#undef QUADS
#undef QUAD_AT
