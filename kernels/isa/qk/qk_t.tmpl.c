/* Scores of a tile whose K is transposed. A vector holds one cell of VL tokens, and an element of q
 * is in all of its lanes: nothing is added across lanes. The dtype DTYPE has ELEMENTS elements in a
 * cell of CELL bytes. CELLS loads VL cells; ELEMENT_OF takes one element of each, in units of UNIT.
 */

#define VECTORS (LANES / VL)                       /* vectors for one cell of a block's tokens */
#define OF_LINE (ELEMENTS * LINE / (LANES * CELL)) /* elements of a token in a line of a block */
#define CELLS_AT(at) ((at) / ELEMENTS * (LANES * CELL)) /* offset of the cell with this element */

/* Do one cell of all tokens of one block or two: `keep` elements, from the `in`-th after `q` on. */
INLINE void CAT(qkt_cell_, DTYPE)(vf *acc, const uint8_t *const *k, int64_t at, const float *q,
                                  const int in, int keep, const int q_rows, const int slots,
                                  const int blocks, const int chains)
{
    const int vectors = blocks * VECTORS;
    CELL_VECTOR cells[2 * VECTORS];
    UNROLL_FOR (int v = 0; v < vectors; v++)
        cells[v] = CELLS(k[v / VECTORS] + at + v % VECTORS * VL * CELL);
    UNROLL_FOR (int e = 0; e < ELEMENTS; e++)
        if (e < keep) {
            vf x[2 * VECTORS];
            UNROLL_FOR (int v = 0; v < vectors; v++)
                x[v] = ELEMENT_OF(cells[v], e);
            UNROLL_FOR (int h = 0; h < q_rows; h++) {
                vf w = v_set1(q[q_index(in + e, h, slots, Q_PART(slots))]);
                UNROLL_FOR (int v = 0; v < vectors; v++)
                    v_fma_into(&acc[((in + e) % chains * q_rows + INDEX(h, q_rows)) * vectors +
                                    INDEX(v, vectors)],
                               w, x[v]);
            }
        }
}

/* Do the LANES tokens of one block or two, for `q_rows` of the `slots` query rows, whose q are
 * interleaved. With few query rows, a score has several sums, which hide the latency of an
 * addition. Their number is the same if blocks are paired, so scores do not depend on that. Every
 * line of a block prefetches. */
INLINE void CAT(qkt_blocks_, DTYPE)(const uint8_t *const *k, prefetch *cursor, const float *q,
                                    int dim, float *scores, const int q_rows, const int slots,
                                    const int blocks, const int order)
{
    const int vectors = blocks * VECTORS, sums = q_rows * vectors;
    const int most = QK_ACC / ((q_rows > 2 ? 2 : 1) * q_rows * VECTORS),
              chains = most > 1 ? most : 1;
    /* all of these divide LANES */
    const int few = chains > OF_LINE ? chains : OF_LINE, step = few > 4 ? few : 4;
    const int part = Q_PART(slots);
    vf acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < chains * sums; i++)
        acc[i] = v_zero();
    int at = 0;
    for (; at + step <= dim; at += step) {
        const float *w = q + q_index(at, 0, slots, part);
        UNROLL_FOR (int i = 0; i < step; i += ELEMENTS) {
            if (i % OF_LINE == 0)
                UNROLL_FOR (int b = 0; b < blocks; b++)
                    prefetch_with(cursor, k[b] + CELLS_AT(at + i), VECTORS > 1 ? 0 : i / OF_LINE,
                                  order);
            CAT(qkt_cell_, DTYPE)(acc, k, CELLS_AT(at + i), w, i, ELEMENTS, q_rows, slots, blocks,
                                  chains);
        }
    }
    for (; at < dim; at += ELEMENTS) {
        if (at % OF_LINE == 0)
            UNROLL_FOR (int b = 0; b < blocks; b++)
                prefetch_with(cursor, k[b] + CELLS_AT(at), 0, order);
        CAT(qkt_cell_, DTYPE)(acc, k, CELLS_AT(at), q + q_index(at, 0, slots, part), 0, dim - at,
                              q_rows, slots, blocks, chains);
    }
    UNROLL_FOR (int i = 0; i < sums; i++) {
        vf sum = acc[INDEX(i, sums)];
        UNROLL_FOR (int c = 1; c < chains; c++)
            sum = v_add(sum, acc[c * sums + INDEX(i, sums)]);
        v_store(scores + i / vectors * QUERY_SCORES + i % vectors * VL,
                UNIT == 1.0f ? sum : v_mul(sum, v_set1(UNIT)));
    }
}

/* Do the next one or two blocks, for `q_rows` of the `slots` query rows. */
INLINE void CAT(qkt_next_, DTYPE)(const uint8_t *const *k, prefetch *cursor, const float *q,
                                  int dim, float *scores, const int q_rows, const int slots,
                                  bool two, const int order)
{
    if (two)
        CAT(qkt_blocks_, DTYPE)(k, cursor, q, dim, scores, q_rows, slots, 2, order);
    else
        CAT(qkt_blocks_, DTYPE)(k, cursor, q, dim, scores, q_rows, slots, 1, order);
}

/* Do a tile, in passes over query rows as in qk_tokens. */
INLINE void CAT(qkt_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                  const int q_rows, const int order)
{
    const int pass = q_rows < QK_MOST ? q_rows : QK_MOST;
    const bool paired = pass > 2 && 2 * pass * VECTORS <= QK_ACC && pairs_blocks(tile, order);
    prefetch cursor = prefetch_from(&tile->k, (int64_t)group->k_dim * CELL / ELEMENTS);
    for (int t = 0, step; t < tile->count; t += step) {
        const bool two = paired && t + LANES < tile->count;
        step = two ? 2 * LANES : LANES;
        const uint8_t *k[] = {row_of(&tile->k, t, order),
                              row_of(&tile->k, t + step - LANES, order)};
        prefetch_of(&cursor, tile, &tile->k, t, order);
        if (order != ORDER_PLAIN)
            CAT(qkt_next_, DTYPE)(k, &cursor, group->q, group->k_dim, scores + t, pass, q_rows, two,
                                  order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
            CAT(qkt_next_, DTYPE)(k, NULL, group->q + h * Q_PART(q_rows), group->k_dim,
                                  scores + h * QUERY_SCORES + t, pass, q_rows, two, ORDER_PLAIN);
    }
}

STAGE(qkt, k, DTYPE, float, WHOLE_MOST, WHOLE_MOST + 1)

#undef VECTORS
#undef OF_LINE
#undef CELLS_AT
#undef DTYPE
#undef ELEMENTS
#undef CELL
#undef CELL_VECTOR
#undef CELLS
#undef ELEMENT_OF
#undef UNIT
#undef PLAIN
