/* QK for eight query rows, four of which share a vector of q: any dtype, if a tier has V_FOURS
 * (512-bit x86), in any order but whole rows. Each query row has a 128-bit lane. Four elements of a
 * row at a time are repeated in all lanes:
 *
 *   q         | h0 e0-3 | h1 e0-3 | h2 e0-3 | h3 e0-3 |  | h4 e0-3 | ... | h7 e0-3 |
 *   row t     | e0-3    | e0-3    | e0-3    | e0-3    |
 *
 * The products are added to acc[2 t] and acc[2 t + 1]. So the sums of a row for all query rows are
 * in two vectors, and little is left to add across lanes. Rows are first converted to floats in L1,
 * once for all query rows; PLAIN rows are floats, and are read in place. */

#ifndef ROWS_AT_ONCE
#define ROWS_AT_ONCE (QK_ACC / 2)
#define SHARERS (VL / SHARE) /* query rows that share a vector */
_Static_assert(2 * SHARERS == Q_ROWS, "two vectors have all q_rows");

/* Add the products of VL elements of each row (floats from byte `at` on) with q. */
INLINE void qk_eight_step(vf *acc, const uint8_t *const *rows, int at, const float *q)
{
    vf w[VL / SHARE][2];
    UNROLL_FOR (int i = 0; i < VL / SHARE; i++)
        UNROLL_FOR (int half = 0; half < 2; half++)
            w[i][half] = v_load(q + (2 * i + half) * VL);
    UNROLL_FOR (int t = 0; t < ROWS_AT_ONCE; t++)
        UNROLL_FOR (int i = 0; i < VL / SHARE; i++) {
            vf x = v_fours(rows[t] + at + i * SHARE * (int)sizeof(float));
            v_fma_into(&acc[2 * t], w[i][0], x);
            v_fma_into(&acc[2 * t + 1], w[i][1], x);
        }
}

/* Write the sums of SHARE rows for each query row, times `fold`, as scores. */
INLINE void eight_scores(const vf *acc, float *scores, const float fold)
{
    UNROLL_FOR (int half = 0; half < 2; half++) {
        vf four[SHARE];
        float sums[VL];
        UNROLL_FOR (int r = 0; r < SHARE; r++)
            four[r] = acc[2 * r + half];
        const vf all = v_sums4(four, false);
        v_store(sums, fold == 1.0f ? all : v_mul(all, v_set1(fold)));
        KEEP_IN_MEMORY(sums);
        UNROLL_FOR (int h = 0; h < SHARERS; h++)
            memcpy(scores + (half * SHARERS + h) * QUERY_SCORES, sums + h * SHARE,
                   SHARE * sizeof *sums);
    }
}
#endif

/* Convert `left` elements of each row, at most SPAN, to floats in L1; zeros fill the last vector.
 * Each row prefetches a line. */
INLINE void CAT(qk_eight_floats_, DTYPE)(float *to, kvb_places k, int left, prefetch *cursor,
                                         const int order)
{
    for (int t = 0; t < ROWS_AT_ONCE; t++, to += SPAN) {
        const uint8_t *row = kvb_row_at(k, t);
        prefetch_line(cursor, order);
        if (left == SPAN) {
            vf x[STEPS];
            CAT(load_row_, DTYPE)(row, 0, STEPS, x);
            UNROLL_FOR (int i = 0; i < STEPS; i++)
                v_store(to + i * VL, x[i]);
        } else
            for (int in = 0; in < left; in += VL)
                v_store(to + in, v_keep(LOAD(row, in), left - in < VL ? left - in : VL));
    }
}

/* Do `left` elements, at most SPAN, of ROWS_AT_ONCE rows. */
INLINE void CAT(qk_eight_span_, DTYPE)(vf *acc, kvb_places k, prefetch *cursor, const float *q,
                                       int left, const int order)
{
    _Alignas(LINE) float floats[ROWS_AT_ONCE * SPAN];
    const uint8_t *rows[ROWS_AT_ONCE];
    if (PLAIN && left == SPAN) {
        UNROLL_FOR (int t = 0; t < ROWS_AT_ONCE; t++) {
            rows[t] = kvb_row_at(k, t);
            prefetch_line(cursor, order);
        }
    } else {
        CAT(qk_eight_floats_, DTYPE)(floats, k, left, cursor, order);
        KEEP_IN_MEMORY(floats);
        UNROLL_FOR (int t = 0; t < ROWS_AT_ONCE; t++)
            rows[t] = (const uint8_t *)(floats + t * SPAN);
    }
    for (int s = 0; s < left; s += VL)
        qk_eight_step(acc, rows, s * (int)sizeof(float), q + s * Q_ROWS);
}

INLINE void CAT(qk_eight_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                  const int order)
{
    prefetch cursor = PREFETCH(&tile->k, group->k_dim);
    for (int t = 0; t < tile->count; t += ROWS_AT_ONCE) {
        kvb_places k = kvb_rows_from(tile->k.rows, t);
        prefetch_of(&cursor, tile, &tile->k, t, order);
        const float *q = CAT(query_, DTYPE)(group);
        vf acc[2 * ROWS_AT_ONCE];
        UNROLL_FOR (int i = 0; i < 2 * ROWS_AT_ONCE; i++)
            acc[i] = v_zero();
        for (int left = group->k_dim; left > 0;
             left -= SPAN, k.from += OFFSET(SPAN), q += SPAN * Q_ROWS)
            CAT(qk_eight_span_, DTYPE)(acc, k, &cursor, q, left < SPAN ? left : SPAN, order);
        UNROLL_FOR (int i = 0; i < ROWS_AT_ONCE; i += SHARE)
            eight_scores(acc + 2 * i, scores + t + i, FOLD);
    }
}
