/* Scores of eight heads, four to a vector of q: a 128-bit lane is a head's, and four elements of a row at a time are
 * repeated for each. So a row's sums for all heads end in two vectors, and little is left to add across lanes. Rows are
 * made floats in L1 first, once for all heads; PLAIN ones, which are floats, are read where they lie. */

#ifndef ROWS_AT_ONCE
#define ROWS_AT_ONCE (QK_ACC / 2)
#define SHARERS (VL / SHARE) /* heads of a vector */
_Static_assert(2 * SHARERS == HEADS, "two vectors have all heads");
#endif

/* Up to SPAN elements of ROWS_AT_ONCE rows: `left` of them. One prefetch goes with each row. */
INLINE void CAT(qk_eight_span_, DTYPE)(vf *acc, kvb_places k, ahead *cursor, const float *q, int left, const int order)
{
#if PLAIN
    const bool in_place = left >= SPAN;
#else
    const bool in_place = false;
#endif
    _Alignas(LINE) float rows[ROWS_AT_ONCE * SPAN];
    if (!in_place) {
        UNROLL for (int t = 0; t < ROWS_AT_ONCE; t++) {
            const uint8_t *row = kvb_row_at(k, t);
            float *to = rows + t * SPAN;
            vf x[SPAN / VL];
            if (left >= SPAN) {
                CAT(loads_, DTYPE)(row, 0, SPAN / VL, x);
                UNROLL for (int i = 0; i < SPAN / VL; i++)
                    v_store(to + i * VL, x[i]);
                continue;
            }
            for (int in = 0; in < left; in += VL)
                v_store(to + in, in + VL <= left ? LOAD(row, 0, in) : v_keep(LOAD(row, 0, in), left - in));
        }
        KEEP_IN_MEMORY(rows);
    }
    UNROLL for (int s = 0; s < SPAN; s += VL) {
        if (s >= left)
            continue;
        vf w[VL / SHARE][2];
        UNROLL for (int i = 0; i < VL / SHARE; i++)
            UNROLL for (int half = 0; half < 2; half++)
                w[i][half] = v_load(q + s * HEADS + (2 * i + half) * VL);
        UNROLL for (int t = 0; t < ROWS_AT_ONCE; t++) {
            if (s == 0)
                ahead_line(cursor, order);
            const uint8_t *from = in_place ? kvb_row_at(k, t) + OFFSET(s) : (const uint8_t *)(rows + t * SPAN + s);
            UNROLL for (int i = 0; i < VL / SHARE; i++) {
                vf x = v_fours(from + i * SHARE * (int)sizeof(float));
                v_fma_into(&acc[2 * t], w[i][0], x);
                v_fma_into(&acc[2 * t + 1], w[i][1], x);
            }
        }
    }
}

INLINE void CAT(qk_eight_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int order)
{
    ahead cursor = AHEAD(tile, tile->next.k, group->dim);
    for (int t = 0; t < tile->count; t += ROWS_AT_ONCE) {
        kvb_places k = kvb_rows_from(tile->k, t);
        ahead_of(&cursor, tile, tile->k, tile->next.k, t, order);
        const float *q = Q_OF(group);
        vf acc[2 * ROWS_AT_ONCE];
        UNROLL for (int i = 0; i < 2 * ROWS_AT_ONCE; i++)
            acc[i] = v_zero();
        int left = group->dim;
        for (; left >= SPAN; left -= SPAN, k.from += OFFSET(SPAN), q += SPAN * HEADS)
            CAT(qk_eight_span_, DTYPE)(acc, k, &cursor, q, SPAN, order);
        if (left > 0)
            CAT(qk_eight_span_, DTYPE)(acc, k, &cursor, q, left, order);
        UNROLL for (int i = 0; i < ROWS_AT_ONCE; i += SHARE)
            UNROLL for (int half = 0; half < 2; half++) {
                vf four[SHARE];
                float sums[VL]; /* of SHARE rows for each head */
                UNROLL for (int r = 0; r < SHARE; r++)
                    four[r] = acc[2 * (i + r) + half];
                v_store(sums, UNFOLD(v_sums4(four, false)));
                KEEP_IN_MEMORY(sums);
                UNROLL for (int h = 0; h < SHARERS; h++)
                    memcpy(scores + (half * SHARERS + h) * QUERY_SCORES + t + i, sums + h * SHARE, SHARE * sizeof *sums);
            }
    }
}
