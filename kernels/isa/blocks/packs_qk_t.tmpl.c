/* QK of dot for DTYPE in blocks of 16 tokens: for each pack, the scales of all tokens, and cells of
 * four codes.
 *
 *   cell of a block   | t0: c0 c1 c2 c3 | t1: c0 c1 c2 c3 | ...     a line; q4_0: eight codes, four
 *   q[h]              |     b0 b1 b2 b3 |     b0 b1 b2 b3 | ...     nibbles below and four above
 *
 * A lane is a token. The products of a pack are added to sum[h], which is then multiplied by the
 * tokens' scales and by the value of code 1 of q. Nothing is added across lanes. */

/* Cells of a pack, and vectors of codes from a vector of a cell. */
#define CELLS ((ELEMENT - 2) / 4)
#define HALVES (BIAS ? 2 : 1)
#if defined V_NIBBLES && BIAS
#define QKT_PACK qkt_nibbles
#else
#define QKT_PACK CAT(qkt_pack_, DTYPE)
#endif

/* Load a vector of a cell as codes: of nibbles, the lower ones, then the upper ones. */
INLINE void CAT(qkt_codes_, DTYPE)(const uint8_t *cell, vi *to)
{
#if BIAS
    v_nibbles(cell, to);
#else
    to[0] = v_codes(cell);
#endif
}

/* Do one cell of a pack, for the tokens of all blocks: sum[q_rows][vectors]. */
INLINE void CAT(qkt_cell_, DTYPE)(vi *sum, const uint8_t *const *k, int64_t from, const int c,
                                  const dot_pack *q, const int q_rows, const int blocks)
{
    enum { VECTORS = LANES / VL };
    const int vectors = blocks * VECTORS;
    vi x[HALVES * PACK_VECTORS];
    UNROLL_FOR (int v = 0; v < vectors; v++)
        CAT(qkt_codes_, DTYPE)(k[v / VECTORS] + from + v % VECTORS * VB, x + HALVES * v);
    UNROLL_FOR (int i = 0; i < HALVES * q_rows; i++) {
        const int h = i / HALVES, half = i % HALVES;
        const vi w = dot_four(q[h].codes + half * 16 + c * 4);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_dot_codes_into(&sum[INDEX(h, q_rows) * vectors + INDEX(v, vectors)],
                             x[HALVES * v + half], w, QK_BIAS);
    }
}

/* Do a pack of all tokens of some blocks. `scales`, `cells`: offsets of the pack in a block. */
INLINE void CAT(qkt_pack_, DTYPE)(vf *acc, const uint8_t *const *k, int64_t scales, int64_t cells,
                                  prefetch *cursor, const dot_pack *q, const int q_rows,
                                  const int blocks, const int order)
{
    enum { VECTORS = LANES / VL };
    const int vectors = blocks * VECTORS;
    vi sum[PACK_SUMS];
    vf scale[PACK_VECTORS];
    UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
        sum[i] = QK_BIAS != 0 ? v_set_int(q[i / vectors].begin) : v_none();
    UNROLL_FOR (int c = 0; c < CELLS; c++) {
        UNROLL_FOR (int b = 0; b < blocks; b++)
            prefetch_line(cursor, order);
        CAT(qkt_cell_, DTYPE)(sum, k, cells + c * LINE, c, q, q_rows, blocks);
    }
    UNROLL_FOR (int v = 0; v < vectors; v++)
        scale[v] = v_load_f16(k[v / VECTORS] + scales + v % VECTORS * VL * 2);
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vf step = v_set1(q[h].step);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_fma_into(&acc[INDEX(h, q_rows) * vectors + INDEX(v, vectors)], v_mul(scale[v], step),
                       v_floats(sum[h * vectors + v]));
    }
}

/* Compute the scores of `blocks` blocks. */
INLINE void CAT(qkt_blocks_, DTYPE)(const kvb_group *group, const uint8_t *const *k,
                                    prefetch *cursor, int q_row, float *scores, const int q_rows,
                                    const int slots, const int blocks, const int order)
{
    enum { VECTORS = LANES / VL };
    const int vectors = blocks * VECTORS, packs = (group->k_dim + 31) / 32;
    const dot_pack *q = dot_packs_of(group) + q_row;
    vf acc[PACK_SUMS];
    UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
        acc[i] = v_zero();
    int64_t scales = 0, cells = packs * PACK_SCALES;
    for (int pack = 0; pack < packs; pack++) {
        for (int b = 0; b < blocks && pack * PACK_SCALES % LINE == 0; b++)
            prefetch_line(cursor, order);
        QKT_PACK(acc, k, scales, cells, cursor, q, q_rows, blocks, order);
        scales += PACK_SCALES;
        cells += CELLS * LINE;
        q += slots;
    }
    UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
        v_store(scores + i / vectors * QUERY_SCORES + i % vectors * VL, acc[i]);
}

/* Do `blocks` blocks from token t on for all query rows, in passes. Only the first pass prefetches.
 */
INLINE void CAT(qkt_some_, DTYPE)(const kvb_tile *tile, const kvb_group *group, prefetch *cursor,
                                  int t, float *scores, const int q_rows, const int blocks,
                                  const int order)
{
    const int pass = q_rows < PACK_ROWS ? q_rows : PACK_ROWS;
    const uint8_t *k[PACK_VECTORS];
    UNROLL_FOR (int b = 0; b < blocks; b++)
        k[b] = row_of(&tile->k, t + b * LANES, order);
    prefetch_of(cursor, tile, &tile->k, t, order);
    if (order != ORDER_PLAIN)
        CAT(qkt_blocks_, DTYPE)(group, k, cursor, 0, scores + t, pass, q_rows, blocks, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
        CAT(qkt_blocks_, DTYPE)(group, k, NULL, h, scores + h * QUERY_SCORES + t, pass, q_rows,
                                blocks, ORDER_PLAIN);
}

/* Do a tile, with as many blocks side by side as registers have sums for: each load of q then
 * serves more blocks. */
INLINE void CAT(qkt_dot_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                      const int q_rows, const int order)
{
    const int most = PACK_ROWS / (q_rows < PACK_ROWS ? q_rows : PACK_ROWS),
              blocks = order == ORDER_PLAIN ? (most < 4 ? most : 4) : (most < 2 ? most : 2);
    prefetch cursor = prefetch_block(&tile->k);
    int t = 0;
    if (blocks > 1 && (order == ORDER_PLAIN || pairs_blocks(tile, order)))
        for (; t + (blocks - 1) * LANES < tile->count; t += blocks * LANES)
            CAT(qkt_some_, DTYPE)(tile, group, &cursor, t, scores, q_rows, blocks, order);
    for (; t < tile->count; t += LANES)
        CAT(qkt_some_, DTYPE)(tile, group, &cursor, t, scores, q_rows, 1, order);
}

STAGE(qkt_dot, k, DTYPE, float, 0, 1)

#undef CELLS
#undef HALVES
#undef QKT_PACK
