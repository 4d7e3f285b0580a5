/* Scores of a tile: up to QK_HEADS heads x QK_ACC / heads tokens at a time, sums merged VL at a time; eight heads as
 * qkeight.tmpl.c says, where a tier has V_FOURS. */

#define STEPS (SPAN / VL) /* vectors of a row from one prefetch to the next */
#define Q_AT(s) (q + q_index((s) * VL, 0, slots, LANES))

#ifndef PLAIN
#define PLAIN 0
#endif

#include "isa/folded.tmpl.c"
#if BLOCK == 1
#include "isa/qk/qkrows.tmpl.c"
#endif
#ifdef V_FOURS
#include "isa/qk/qkeight.tmpl.c"
#endif

/* One head sums up the codes of a packed row, each block's times its scale; several share values. */
#define APART(heads) (BLOCK > 1 && (heads) == 1)

/* One vector of D, at element `in` of the rows: `keep` lanes of it, VL when the vector is whole. */
INLINE void CAT(qk_step_, DTYPE)(vf *acc, kvb_places k, int in, const float *q, int keep,
                                 const int heads)
{
    const int tokens = QK_ACC / heads;
#if defined(QK_AT_ONCE) || BLOCK > 1
    if (heads == 1) {
        vf w = v_load(q);
        UNROLL for (int t = 0; t < tokens; t++) {
            vf row = APART(heads) ? CODES_AT(kvb_row_at(k, t), 0, in) : LOAD(kvb_row_at(k, t), 0, in);
            v_fma_into(&acc[t], w, keep < VL ? v_keep(row, keep) : row);
        }
        return;
    }
#endif
    vf x[QK_ACC];
    UNROLL for (int t = 0; t < tokens; t++) {
        x[t] = LOAD(kvb_row_at(k, t), 0, in);
        if (keep < VL)
            x[t] = v_keep(x[t], keep);
    }
    UNROLL for (int h = 0; h < heads; h++) {
        vf w = v_load(q + h * LANES);
        UNROLL for (int t = 0; t < tokens; t++)
            v_fma_into(&acc[TURN(h, heads) * tokens + t], w, x[t]);
    }
}

/* QK_ACC / heads tokens from k[0] on, and `heads` of the `slots` heads whose q lie interleaved: one pointer and
 * constant offsets reach them all. A prefetch goes with every line of every row, spread over the line's steps. */
INLINE void CAT(qk_tokens_, DTYPE)(kvb_places k, ahead *cursor, const float *q, int dim, float *scores,
                                   const int heads, const int slots, const int order)
{
    const int tokens = QK_ACC / heads;
    vf acc[QK_ACC], part[QK_ACC], *const into = APART(heads) ? part : acc;
    UNROLL for (int i = 0; i < QK_ACC; i++)
        acc[i] = part[i] = v_zero();
    int at = 0;
    for (; at + SPAN <= dim; at += SPAN, k.from += OFFSET(SPAN), q += SPAN * slots)
        UNROLL for (int s = 0; s < STEPS; s++) {
            UNROLL for (int t = 0; t < tokens; t++)
                if (t % STEPS == s)
                    ahead_line(cursor, order);
#if PAIR == 2
            if (s % 2 == 1)
                CAT(qk_pair_, DTYPE)(acc, k, (s - 1) * VL, Q_AT(s - 1), Q_AT(s), heads);
#else
            CAT(qk_step_, DTYPE)(into, k, s * VL, Q_AT(s), VL, heads);
            if (APART(heads) && (s + 1) * VL % BLOCK == 0)
                qk_block(acc, part, k, OFFSET(s * VL), heads);
#endif
        }
    if (at < dim) {
        UNROLL for (int t = 0; t < tokens; t++)
            ahead_line(cursor, order);
        const int left = dim - at;
        for (int in = 0; in < left; in += VL) {
            const float *w = q + q_index(in, 0, slots, LANES);
            if (in + VL <= left)
                CAT(qk_step_, DTYPE)(into, k, in, w, VL, heads);
            else
                CAT(qk_step_, DTYPE)(into, k, in, w, left - in, heads);
            if (APART(heads) && ((in + VL) % BLOCK == 0 || in + VL >= left))
                qk_block(acc, part, k, OFFSET(in), heads);
        }
    }
    float sums[QK_ACC];
    UNROLL for (int i = 0; i < QK_ACC; i += VL)
        v_store(sums + i, UNFOLD(v_sums(acc + i)));
    KEEP_IN_MEMORY(sums);
    UNROLL for (int h = 0; h < heads; h++)
        memcpy(scores + h * QUERY_SCORES, sums + h * tokens, (size_t)tokens * sizeof *sums);
}

/* `heads` heads in passes of at most QK_HEADS; only the first pass prefetches. */
INLINE void CAT(qk_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads,
                                 const int order)
{
#if BLOCK == 1
    if (order == ORDER_ROWS) {
        CAT(qk_rows_, DTYPE)(tile, group, scores, heads);
        return;
    }
#endif
#ifdef V_FOURS
    if (heads == HEADS) {
        CAT(qk_eight_, DTYPE)(tile, group, scores, order);
        return;
    }
#endif
    const int pass = heads < QK_HEADS ? heads : QK_HEADS, tokens = QK_ACC / pass;
    ahead cursor = AHEAD(tile, tile->next.k, group->dim);
    for (int t = 0; t < tile->count; t += tokens) {
        ahead_of(&cursor, tile, tile->k, tile->next.k, t, order);
        UNROLL for (int h = 0; h < heads; h += pass)
            CAT(qk_tokens_, DTYPE)(kvb_rows_from(tile->k, t), &cursor, Q_OF(group) + h * LANES, group->dim,
                                   scores + h * QUERY_SCORES + t, pass, heads, h == 0 ? order : ORDER_PLAIN);
    }
}

STAGE(qk, DTYPE, float, BLOCK == 1 ? ROW_HEADS : NEVER, ROW_HEADS + 1)

/* As all its stages have it. */
static bool CAT(whole_, DTYPE)(int64_t heads, int64_t dim)
{
    (void)dim;
    return BLOCK == 1 && heads <= ROW_HEADS;
}

#undef Q_AT
