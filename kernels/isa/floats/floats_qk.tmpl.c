/* QK by products of bf16, of rows that are not transposed. QK_ACC sums: q_rows x tokens.
 *
 *   q[h]      | q0 q1 | q2 q3 | ...       words
 *   row t     | x0 x1 | x2 x3 | ...       acc[h][t] += q0 x0 + q1 x1 in a lane
 */

/* Load `keep` bytes of a row (VB: all) as WORDS vectors of words. */
INLINE void CAT(floats_load_, DTYPE)(const uint8_t *row, const vcodes *codes, int keep, vi *to)
{
    vi x = v_load_bytes((const int8_t *)row);
    if (keep < VB)
        x = v_keep_bytes(x, keep);
#if ELEMENT == 1
    floats_looked_up(codes, x, to);
#else
    (void)codes;
    to[0] = x;
#endif
}

/* Do a piece of each row, at byte `at`. With few query rows, a row is used as soon as it is loaded;
 * with many, their q is loaded once for all rows. */
INLINE void CAT(qk_floats_step_, DTYPE)(vf *acc, kvb_places k, int at, int keep,
                                        const vcodes *codes, const uint16_t *q, const int q_rows,
                                        const int slots)
{
    const int tokens = QK_ACC / q_rows;
    vi x[QK_ACC * WORDS];
    UNROLL_FOR (int t = 0; t < tokens; t++) {
        CAT(floats_load_, DTYPE)(kvb_row_at(k, t) + at, codes, keep, x + t * WORDS);
        if (q_rows <= FLOATS_WHOLE)
            UNROLL_FOR (int i = 0; i < WORDS * q_rows; i++) {
                const int h = i % q_rows, w = i / q_rows;
                v_dot16_into(&acc[INDEX(h, q_rows) * tokens + t], x[t * WORDS + w],
                             v_load_bytes((const int8_t *)(q + (w * slots + h) * PW)));
            }
    }
    if (q_rows <= FLOATS_WHOLE)
        return;
    UNROLL_FOR (int i = 0; i < WORDS * q_rows; i++) {
        const int h = i % q_rows, w = i / q_rows;
        const vi own = v_load_bytes((const int8_t *)(q + (w * slots + h) * PW));
        UNROLL_FOR (int t = 0; t < tokens; t++)
            v_dot16_into(&acc[h * tokens + t], x[t * WORDS + w], own);
    }
}

/* Do QK_ACC / q_rows whole rows from `first` on. */
INLINE void CAT(qk_floats_whole_, DTYPE)(vf *acc, const kvb_tile *tile, int first, int dim,
                                         prefetch *cursor, const vcodes *codes, const uint16_t *q,
                                         const int q_rows)
{
    const int tokens = QK_ACC / q_rows, bytes = dim * ELEMENT;
    UNROLL_FOR (int t = 0; t < tokens; t++) {
        const uint8_t *row = row_of(&tile->k, first + t, ORDER_ROWS);
        UNROLL_FOR (int p = 0; p < FLOATS_PARTS / WORDS; p++) {
            vi x[WORDS];
            if (p * VB >= bytes)
                continue;
            prefetch_with(cursor, row + p * VB, 0, ORDER_ROWS);
            CAT(floats_load_, DTYPE)(row + p * VB, codes, bytes - p * VB, x);
            UNROLL_FOR (int i = 0; i < WORDS * q_rows; i++) {
                const int h = i % q_rows, w = i / q_rows;
                v_dot16_into(
                    &acc[INDEX(h, q_rows) * tokens + t], x[w],
                    v_load_bytes((const int8_t *)(q + ((p * WORDS + w) * q_rows + h) * PW)));
            }
        }
    }
}

INLINE void CAT(qk_floats_tokens_, DTYPE)(const kvb_tile *tile, int first, const kvb_group *group,
                                          prefetch *cursor, int q_row, float *scores,
                                          const int q_rows, const int slots, const int order)
{
    const kvb_places k = kvb_rows_from(tile->k.rows, first);
    const int tokens = QK_ACC / q_rows, bytes = group->k_dim * ELEMENT;
    const uint16_t *q = (const uint16_t *)(const void *)group->prepared->codes + q_row * PW;
    const vcodes codes = CAT(codes_of_, DTYPE)();
    vf acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < QK_ACC; i++)
        acc[i] = v_zero();
    if (order == ORDER_ROWS && group->k_dim == USUAL)
        CAT(qk_floats_whole_, DTYPE)(acc, tile, first, USUAL, cursor, &codes, q, q_rows);
    else if (order == ORDER_ROWS)
        CAT(qk_floats_whole_, DTYPE)(acc, tile, first, group->k_dim, cursor, &codes, q, q_rows);
    int at = order == ORDER_ROWS ? bytes : 0;
    for (; at + LINE <= bytes; at += LINE, q += LINE / VB * WORDS * slots * PW)
        UNROLL_FOR (int s = 0; s < LINE / VB; s++) {
            UNROLL_FOR (int t = 0; t < tokens; t++)
                if (t % (LINE / VB) == s)
                    prefetch_line(cursor, order);
            CAT(qk_floats_step_, DTYPE)(acc, k, at + s * VB, VB, &codes, q + s * WORDS * slots * PW,
                                        q_rows, slots);
        }
    if (at < bytes)
        UNROLL_FOR (int t = 0; t < tokens; t++)
            prefetch_line(cursor, order);
    for (; at < bytes; at += VB, q += WORDS * slots * PW)
        CAT(qk_floats_step_, DTYPE)(acc, k, at, bytes - at, &codes, q, q_rows, slots);
    float all[QK_ACC];
    UNROLL_FOR (int i = 0; i < QK_ACC; i += VL)
        v_store(all + i, v_sums(acc + i));
    KEEP_IN_MEMORY(all);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        memcpy(scores + h * QUERY_SCORES, all + h * tokens, (size_t)tokens * sizeof *all);
}

#ifdef V_FOURS
#include "isa/floats/floats_eight.tmpl.c"
#endif

/* Do a tile, in passes of at most QK_MOST query rows. Only the first pass prefetches. */
INLINE void CAT(qk_floats_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                        const int q_rows, const int order)
{
    const int pass = q_rows < QK_MOST ? q_rows : QK_MOST, tokens = QK_ACC / pass;
    prefetch cursor = prefetch_from(&tile->k, (int64_t)group->k_dim * ELEMENT);
#ifdef V_FOURS
    if (q_rows == Q_ROWS) {
        CAT(qk_floats_eight_, DTYPE)(tile, group, scores, order);
        return;
    }
#endif
    for (int t = 0; t < tile->count; t += tokens) {
        prefetch_of(&cursor, tile, &tile->k, t, order);
        if (order != ORDER_PLAIN)
            CAT(qk_floats_tokens_, DTYPE)(tile, t, group, &cursor, 0, scores + t, pass, q_rows,
                                          order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
            CAT(qk_floats_tokens_, DTYPE)(tile, t, group, NULL, h, scores + h * QUERY_SCORES + t,
                                          pass, q_rows, ORDER_PLAIN);
    }
}
