/* Scores of a tile whose K is transposed. A vector holds one cell of VL tokens, and an element of q goes to all of its
 * lanes: nothing is summed across lanes. Of the dtype DTYPE, with ELEMENTS to a cell of CELL bytes; CELLS loads VL of
 * them, of which ELEMENT_OF takes one element, in units of UNIT. */

#define VECTORS (LANES / VL)                             /* that a cell of a block's tokens takes */
#define OF_LINE (ELEMENTS * LINE / (LANES * CELL))       /* elements of a token to a line of a block */
#define BLOCK_AT(at) ((at) / ELEMENTS * (LANES * CELL))  /* where the cell with this element begins */

/* One cell of all tokens of a block, of the elements from `in` on behind those of q; `keep` of them. */
INLINE void CAT(qkt_cell_, DTYPE)(vf *acc, const uint8_t *k, const float *q, const int in, int keep, const int heads,
                                  const int slots, const int chains)
{
    CELL_VECTOR cells[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++)
        cells[v] = CELLS(k + v * VL * CELL);
    UNROLL for (int e = 0; e < ELEMENTS; e++) {
        if (e >= keep)
            return;
        vf x[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++)
            x[v] = ELEMENT_OF(cells[v], e);
        UNROLL for (int h = 0; h < heads; h++) {
            vf w = v_set1(q[q_index(in + e, h, slots, Q_PART(slots))]);
            UNROLL for (int v = 0; v < VECTORS; v++)
                v_fma_into(&acc[((in + e) % chains * heads + h) * VECTORS + v], w, x[v]);
        }
    }
}

/* The LANES tokens of a block, and `heads` of the `slots` heads whose q lie interleaved. Few heads have several sums to
 * a score, which hide the latency of one. A prefetch goes with every line of the block. */
INLINE void CAT(qkt_block_, DTYPE)(const uint8_t *k, ahead *cursor, const float *q, int dim, float *scores,
                                   const int heads, const int slots, const int hint)
{
    const int chains = QK_ACC / (heads * VECTORS) > 1 ? QK_ACC / (heads * VECTORS) : 1, sums = heads * VECTORS;
    const int few = chains > OF_LINE ? chains : OF_LINE, step = few > 4 ? few : 4; /* all divide LANES */
    const int part = Q_PART(slots);
    vf acc[QK_ACC];
    UNROLL for (int i = 0; i < chains * sums; i++)
        acc[i] = v_zero();
    int at = 0;
    for (; at + step <= dim; at += step) {
        const float *w = q + q_index(at, 0, slots, part);
        UNROLL for (int i = 0; i < step; i += ELEMENTS) {
            if (i % OF_LINE == 0)
                ahead_with(cursor, k + BLOCK_AT(at + i), VECTORS > 1 ? 0 : i / OF_LINE, hint);
            CAT(qkt_cell_, DTYPE)(acc, k + BLOCK_AT(at + i), w, i, ELEMENTS, heads, slots, chains);
        }
    }
    for (; at < dim; at += ELEMENTS) {
        if (at % OF_LINE == 0)
            ahead_with(cursor, k + BLOCK_AT(at), 0, hint);
        CAT(qkt_cell_, DTYPE)(acc, k + BLOCK_AT(at), q + q_index(at, 0, slots, part), 0, dim - at, heads, slots,
                              chains);
    }
    UNROLL for (int i = 0; i < sums; i++) {
        UNROLL for (int c = 1; c < chains; c++)
            acc[i] = v_add(acc[i], acc[c * sums + i]);
        v_store(scores + i / VECTORS * TILE + i % VECTORS * VL, UNIT == 1.0f ? acc[i] : v_mul(acc[i], v_set1(UNIT)));
    }
}

/* As in qk.tmpl.c. */
INLINE void CAT(qkt_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads,
                                  const int hint)
{
    const int pass = heads < QK_HEADS ? heads : QK_HEADS;
    ahead cursor = ahead_from(tile, tile->k_ahead, (int64_t)group->dim * CELL / ELEMENTS);
    for (int t = 0; t < tile->count; t += LANES) {
        ahead_of(&cursor, tile, tile->k, tile->k_ahead, t, hint);
        UNROLL for (int h = 0; h < heads; h += pass)
            CAT(qkt_block_, DTYPE)(row_of(tile, tile->k, t, hint), &cursor, group->q + h * Q_PART(heads), group->dim,
                                   scores + h * TILE + t, pass, heads, h == 0 ? hint : NOTHING);
    }
}

STAGE(qkt, DTYPE, k, float, FEW_HEADS)

#undef VECTORS
#undef OF_LINE
#undef BLOCK_AT
#undef DTYPE
#undef ELEMENTS
#undef CELL
#undef CELL_VECTOR
#undef CELLS
#undef ELEMENT_OF
#undef UNIT
