/* Weighted sum of a tile's V rows for a group of 1, 2, 4 or 8 heads: acc[h] = acc[h] *
 * rescale[h] + sum over t of p[h][t] * v[t]. Which algorithm takes it:
 *
 *   pv_slices   any rows: a slice of D at a time, whose sums stay in registers for many rows
 *   pv_rows     rows whole, 1 and 2 heads: longer than registers have sums for, or of several
 *               KV heads in turn
 *   pv_four     rows whole, 4 heads where ROW_HEADS is 4, 5 to 8 vectors of D: all sums in
 *               registers
 *   pv_pairs    rows whole, 4 heads where ROW_HEADS is 4, all others
 *
 * Rows are taken whole by ORDER_ROWS alone, and packed ones never. */
#include "isa/pv/pv_slices.tmpl.c"

#if PACK == 1
#include "isa/pv/pv_rows.tmpl.c"
#if ROW_HEADS > FEW_HEADS
#include "isa/pv/pv_four.tmpl.c"
#include "isa/pv/pv_pairs.tmpl.c"
#endif

/* Whether one of them took the tile. */
INLINE bool CAT(pv_whole_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                  const int heads)
{
    /* more sums than a slice keeps; those of two heads go through L1 only where a vector is a line:
     * twice the stores cost more */
    const bool many = group->v_dim > 8 * VL && (heads == 1 || VL == LANES),
               in_turn = tile->v.schedule->kv_heads > 1;
    if (heads <= FEW_HEADS && (in_turn || many)) {
        (heads == 1 ? CAT(pv_rows1_, DTYPE) : CAT(pv_rows2_, DTYPE))(tile, group, p);
        return true;
    }
#if ROW_HEADS > FEW_HEADS
    if (heads == 4 && (in_turn || many)) {
        CAT(pv_pairs4_, DTYPE)(tile, group, p);
        return true;
    }
    if (heads == 4)
        return CAT(pv_four_, DTYPE)(tile, group, p);
#endif
    return false;
}
#endif

INLINE void CAT(pv_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                 const int heads, const int order)
{
#if PACK == 1
    if (order == ORDER_ROWS && CAT(pv_whole_, DTYPE)(tile, group, p, heads))
        return;
#endif
    CAT(pv_slices_, DTYPE)(tile, group, p, heads, order);
}

STAGE(pv, v, DTYPE, const float, PACK == 1 ? ROW_HEADS : NOT_IN_ORDER, ROW_HEADS + 1)
