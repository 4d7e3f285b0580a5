/* Scores of a tile for a group of 1, 2, 4 or 8 query rows: scores[h][t] = q[h] . k[t]. The
 * algorithms:
 *
 *   qk_rows       whole rows, for 1 and 2 query rows, or 4 if WHOLE_MOST is 4: one KV head
 *   qk_in_turn    the same for several KV heads, whose rows are read in turn
 *   qk_eight      8 query rows, if a tier has V_FOURS (512-bit x86)
 *   qk_tokens     all others
 *
 * Only ORDER_ROWS reads whole rows, and never packed ones. */
#include "isa/qk/qk_tokens.tmpl.c"
#ifdef V_FOURS
#include "isa/qk/qk_eight.tmpl.c"
#endif
#if PACK == 1
#include "isa/qk/qk_rows.tmpl.c"
#include "isa/qk/qk_in_turn.tmpl.c"
#endif

INLINE void CAT(qk_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                 const int q_rows, const int order)
{
#if PACK == 1
    if (order == ORDER_ROWS) {
        if (tile->k.schedule->kv_heads > 1)
            CAT(qk_in_turn_, DTYPE)(tile, group, scores, q_rows);
        else
            CAT(qk_rows_, DTYPE)(tile, group, scores, q_rows);
        return;
    }
#endif
#ifdef V_FOURS
    if (q_rows == Q_ROWS) {
        CAT(qk_eight_, DTYPE)(tile, group, scores, order);
        return;
    }
#endif
    CAT(qk_passes_, DTYPE)(tile, group, scores, q_rows, order);
}

STAGE(qk, k, DTYPE, float, PACK == 1 ? WHOLE_MOST : NOT_IN_ORDER, WHOLE_MOST + 1)
