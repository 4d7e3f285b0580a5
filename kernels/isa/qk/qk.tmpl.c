/* Scores of a tile for a group of 1, 2, 4 or 8 heads: scores[h][t] = q[h] . k[t]. Which
 * algorithm takes it:
 *
 *   qk_rows       rows whole, 1 and 2 heads, or 4 where ROW_HEADS is 4: one KV head
 *   qk_in_turn    the same of several KV heads, whose rows lie in turn
 *   qk_eight      8 heads where a tier has V_FOURS (512-bit x86)
 *   qk_tokens     all others
 *
 * Rows are taken whole by ORDER_ROWS alone, and packed ones never. */
#include "isa/qk/qk_tokens.tmpl.c"
#ifdef V_FOURS
#include "isa/qk/qk_eight.tmpl.c"
#endif
#if PACK == 1
#include "isa/qk/qk_rows.tmpl.c"
#include "isa/qk/qk_in_turn.tmpl.c"
#endif

INLINE void CAT(qk_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                 const int heads, const int order)
{
#if PACK == 1
    if (order == ORDER_ROWS) {
        if (tile->k.schedule->kv_heads > 1)
            CAT(qk_in_turn_, DTYPE)(tile, group, scores, heads);
        else
            CAT(qk_rows_, DTYPE)(tile, group, scores, heads);
        return;
    }
#endif
#ifdef V_FOURS
    if (heads == Q_ROWS) {
        CAT(qk_eight_, DTYPE)(tile, group, scores, order);
        return;
    }
#endif
    CAT(qk_passes_, DTYPE)(tile, group, scores, heads, order);
}

STAGE(qk, k, DTYPE, float, PACK == 1 ? ROW_HEADS : NOT_IN_ORDER, ROW_HEADS + 1)
