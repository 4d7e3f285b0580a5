/* Weighted sum of a tile's V rows for a group of 1, 2, 4 or 8 query rows: acc[h] = acc[h] *
 * rescale[h] + sum over t of p[h][t] * v[t]. The algorithms:
 *
 *   pv_slices   any rows: a slice of D at a time, whose sums stay in registers for many rows
 *   pv_rows     whole rows, 1 and 2 query rows: rows too long for sums in registers, or of several
 *               KV heads in turn
 *   pv_four     whole rows, 4 query rows if WHOLE_MOST is 4, 5 to 8 vectors of D: all sums in
 *               registers
 *   pv_pairs    whole rows, 4 query rows if WHOLE_MOST is 4, all others
 *
 * Only ORDER_ROWS reads whole rows, and never packed ones. */
#include "isa/pv/pv_slices.tmpl.c"

#if PACK == 1
#include "isa/pv/pv_rows.tmpl.c"
#if WHOLE_MOST > FEW_Q_ROWS
#include "isa/pv/pv_four.tmpl.c"
#include "isa/pv/pv_pairs.tmpl.c"
#endif

/* Do the tile with one of the algorithms for whole rows. Returns false if none fits. */
INLINE bool CAT(pv_whole_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                  const int q_rows)
{
    /* more sums than a slice keeps. Sums of two query rows go through L1 only if a vector is a
     * line: with shorter vectors twice the stores cost more */
    const bool many = group->v_dim > 8 * VL && (q_rows == 1 || VL == LANES),
               in_turn = tile->v.schedule->kv_heads > 1;
    if (q_rows <= FEW_Q_ROWS && (in_turn || many)) {
        (q_rows == 1 ? CAT(pv_rows1_, DTYPE) : CAT(pv_rows2_, DTYPE))(tile, group, p);
        return true;
    }
#if WHOLE_MOST > FEW_Q_ROWS
    if (q_rows == 4 && (in_turn || many)) {
        CAT(pv_pairs4_, DTYPE)(tile, group, p);
        return true;
    }
    if (q_rows == 4)
        return CAT(pv_four_, DTYPE)(tile, group, p);
#endif
    return false;
}
#endif

INLINE void CAT(pv_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                 const int q_rows, const int order)
{
#if PACK == 1
    if (order == ORDER_ROWS && CAT(pv_whole_, DTYPE)(tile, group, p, q_rows))
        return;
#endif
    CAT(pv_slices_, DTYPE)(tile, group, p, q_rows, order);
}

STAGE(pv, v, DTYPE, const float, PACK == 1 ? WHOLE_MOST : NOT_IN_ORDER, WHOLE_MOST + 1)
