/* PV of dot for DTYPE if V is in quads of four tokens. Weights are rounded as in pv.tmpl.c.
 *
 *   line of a block   | a0 b0 c0 d0 | a1 b1 c1 d1 | ...     16 codes of tokens t to t + 3; of q4_0
 *   weights           | wa wb wc wd | wa wb wc wd | ...     16 below and 16 above
 *
 * A lane is an element. The products of both are added to sum[h]. A part is a vector of a line: VL
 * code bytes of each token. Nothing needs to be transposed. */

#define HALVES (BIAS ? 2 : 1) /* vectors of elements in a part */
/* Code bytes that share weights; bytes of weights from one quad, and from one query row, to the
 * next / */
#define PACK_CODES (PACK > 1 ? ELEMENT - 2 : DIM_MAX)
#define QUAD_BYTES (PACK > 1 ? WEIGHED_QUAD : 4)
#define ROW_BYTES (PACK > 1 ? WEIGHED_ROW : TILE)
#if defined V_NIBBLES && BIAS
#define PVQ_SUMS pvq_nibbles
#else
#define PVQ_SUMS CAT(pvq_sums_, DTYPE)
#endif
#if PACK > 1
#define WEIGHTS quad_weights
#else
#define WEIGHTS dot_weights
#endif

/* Multiply the parts of a slice, for one quad of tokens, by their weights. */
INLINE void CAT(pvq_step_, DTYPE)(vi *sum, const uint8_t *line, const int8_t *weights,
                                  const int q_rows, const int parts)
{
    vi x[PV_ACC];
    UNROLL_FOR (int i = 0; i < parts; i++) {
        const uint8_t *at = line + i * VL / SIDE * SQUARE + i * VL % SIDE * 4;
#if BIAS
        v_nibbles(at, x + 2 * i);
#else
        x[i] = v_load_bytes((const int8_t *)at);
        v_hide(&x[i]); /* else some query rows load it again */
#endif
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        UNROLL_FOR (int i = 0; i < parts * HALVES; i++) {
            const int pack = i / HALVES * VL / PACK_CODES;
            const vi w = dot_four(weights + h * ROW_BYTES + pack * 4);
            vi *own = &sum[INDEX(h, q_rows) * parts * HALVES + INDEX(i, parts * HALVES)];
            if (BIAS)
                v_dot_codes_into(own, x[i], w, true);
            else
                v_dot_weights_into(own, w, x[i]);
        }
}

/* Compute the sums of a slice: found[q_rows][parts][HALVES]. `begins`: the slice is the start of
 * its lines. */
INLINE void CAT(pvq_sums_, DTYPE)(const quad_run *run, prefetch *cursor, const bool begins,
                                  vi *found, const int q_rows, const int parts, const int order)
{
    const int lines = parts * VL < SIDE ? 1 : parts * VL / SIDE;
    const int8_t *weights = run->weights;
    vi sum[PV_ACC];
    UNROLL_FOR (int i = 0; i < q_rows * parts * HALVES; i++)
        sum[i] = v_none();
    for (int t = run->first; t < run->end; t += LANES) {
        const uint8_t *line = row_of(&run->v, t, order);
        for (int i = 0; i < run->fronts && order != ORDER_PLAIN; i++)
            prefetch_line(cursor, order);
        for (int quad = 0; quad < LANES / 4; quad++, line += LINE, weights += QUAD_BYTES) {
            if (begins)
                UNROLL_FOR (int i = 0; i < lines; i++)
                    prefetch_with(cursor, line + i * SQUARE, quad, order);
            CAT(pvq_step_, DTYPE)(sum, line, weights, q_rows, parts);
        }
    }
    UNROLL_FOR (int i = 0; i < q_rows * parts * HALVES; i++)
        found[i] = sum[i];
}

/* Add a slice, from part `part` on, to the accumulators. */
INLINE void CAT(pvq_slice_, DTYPE)(const quad_run *all, prefetch *cursor, int64_t part,
                                   const int q_rows, const int parts, const int order)
{
    vi found[PV_ACC];
    HIDE(part);
    const int64_t code = part * VL, pack = code / PACK_CODES;
    quad_run run = *all;
    run.v.rows.from += code / SIDE * SQUARE + code % SIDE * 4;
    if (PACK > 1)
        run.weights += (pack / FOUR_PACKS * run.tokens + pack % FOUR_PACKS) * 4;
    if (part)
        run.fronts = 0;
    PVQ_SUMS(&run, cursor, code % SIDE == 0, found, q_rows, parts, order);
    UNROLL_FOR (int i = 0; i < q_rows * parts * HALVES; i++) {
        const int h = i / HALVES / parts, nth = i / HALVES % parts * VL;
        const int64_t at = code + nth, own = (pack + nth / PACK_CODES) * Q_ROWS + h,
                      d = BIAS ? at / 16 * 32 + at % 16 + i % HALVES * 16 : at;
        float *to = run.acc + h * run.v_pad + d;
        vf whole = v_floats(found[i]);
        if (BIAS)
            whole = v_add(whole, v_set1(run.begin[own]));
        if (d < run.elements)
            v_store(to,
                    v_fma(whole, v_set1(run.step[own]), v_mul(v_load(to), v_set1(run.rescale[h]))));
    }
}

/* Do `parts` parts for the tokens of one run. */
INLINE void CAT(pvq_run_, DTYPE)(const quad_run *run, prefetch *cursor, int64_t parts,
                                 const int q_rows, const int order)
{
    const int fit = PV_ACC / (q_rows * HALVES), own = FOUR_PACKS * PACK_CODES / VL,
              most = fit < own ? fit : own;
    int64_t part = 0;
#define SLICES(count)                                \
    if (most >= count)                               \
        for (; part + count <= parts; part += count) \
            CAT(pvq_slice_, DTYPE)(run, cursor, part, q_rows, most < count ? most : count, order);
    SLICES(8)
    SLICES(4)
    SLICES(2)
    SLICES(1)
#undef SLICES
}

/* Do the packs from w->from on; all of an i8 row is one. */
INLINE void CAT(pvq_packs_, DTYPE)(const kvb_tile *tile, WEIGHTS *w, quad_run run, prefetch *cursor,
                                   int q_row, int64_t parts, const int q_rows, const int order)
{
    const int tokens = run.tokens,
              step = order == ORDER_RUNS ? (int)tile->v.schedule->run_rows : TILE;
    const int8_t *weights = run.weights;
    for (int first = 0; first < tokens; first += step, run.rescale = ones) {
        run.first = first;
        run.end = (int)at_most(first + step, tokens);
        run.weights = weights + first / 4 * QUAD_BYTES;
        prefetch_of(cursor, tile, &tile->v, first, order);
#if BIAS
        quad_firsts(w, first, run.end, q_row, q_rows, BIAS);
#else
        (void)w, (void)q_row;
#endif
        CAT(pvq_run_, DTYPE)(&run, cursor, parts, q_rows, order);
    }
}

/* Do a tile for `q_rows` query rows from `q_row` on. */
INLINE void CAT(pvq_some_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                  WEIGHTS *w, int q_row, const int q_rows, const int order)
{
    prefetch cursor = prefetch_block(&tile->v);
    quad_run run = {
        .v = tile->v,
        .tokens = (int)round_up(tile->count, LANES),
        .rescale = group->rescale + q_row,
        .acc = group->acc + q_row * group->v_pad,
        .v_pad = group->v_pad,
        .elements = group->v_pad,
    };
#if PACK > 1
    const int packs = (group->v_dim + 31) / 32,
              each = FOUR_PACKS * TILE / run.tokens / FOUR_PACKS * FOUR_PACKS;
    run.v.rows.from += packs * PACK_SCALES;
    run.fronts = (packs * PACK_SCALES + LINE - 1) / LINE;
    w->tokens = run.tokens;
    for (w->from = 0; w->from < packs; w->from = w->end) {
        w->end = (int)at_most(w->from + each, packs);
        for (int pack = w->from; pack < w->end; pack += FOUR_PACKS)
            quad_weights_make(w, tile, p, pack, packs, q_row, q_rows, BIAS != 0, order);
        run.weights = w->bytes[q_row];
        run.step = w->step[w->from] + q_row;
        run.begin = w->first[w->from] + q_row;
        CAT(pvq_packs_, DTYPE)(tile, w, run, &cursor, q_row, (w->end - w->from) * PACK_CODES / VL,
                               q_rows, order);
        run.v.rows.from += (w->end - w->from) * PACK_CODES / SIDE * SQUARE;
        run.acc += (w->end - w->from) * 32;
        run.elements -= (w->end - w->from) * 32;
        run.fronts = 0;
    }
#else
    CAT(dot_weights_, DTYPE)(w, tile, p, 0, group->v_dim, q_row, q_rows);
    run.weights = w->bytes[0][q_row];
    run.step = w->step[0] + q_row;
    CAT(pvq_packs_, DTYPE)(tile, w, run, &cursor, q_row, group->v_pad / VL, q_rows, order);
#endif
}

/* Do a tile, in passes of at most PV_MOST query rows. Only the first pass prefetches. */
INLINE void CAT(pvq_dot_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                      const int q_rows, const int order)
{
    const int pass = q_rows < PV_MOST ? q_rows : PV_MOST;
    WEIGHTS weights;
    if (order != ORDER_PLAIN)
        CAT(pvq_some_, DTYPE)(tile, group, p, &weights, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
        CAT(pvq_some_, DTYPE)(tile, group, p, &weights, h, pass, ORDER_PLAIN);
}

#undef HALVES
#undef PVQ_SUMS
#undef PACK_CODES
#undef QUAD_BYTES
#undef ROW_BYTES
#undef WEIGHTS
