/* QK by products of bf16 for eight query rows, if a tier has V_FOURS: four of them share a vector
 * of q, as in qk_eight, so that little is left to add across lanes.
 *
 *   q         | h0 w0-7 | h1 w0-7 | h2 w0-7 | h3 w0-7 |  | h4 w0-7 | ... | h7 w0-7 |
 *   row t     | w0-7    | w0-7    | w0-7    | w0-7    |     16 bytes, four times
 *
 * The products are added to acc[2 t] and acc[2 t + 1]. Rows of bf16 are read in place, but not
 * their last words. 8-bit codes are first converted to words in L1, in the order in which they are
 * zipped. */

/* Multiply LINE bytes of words of each row, from byte `at` on, by q. Rows take turns, so that no
 * sum waits for itself. */
#ifndef FLOATS_EIGHT_LINE
#define FLOATS_EIGHT_LINE
INLINE void floats_eight_line(vf *acc, const uint8_t *const *rows, int at, const uint16_t *q)
{
    enum { PARTS = LINE / 2 / FOUR_WORDS };
    vi w[2 * PARTS];
    UNROLL_FOR (int i = 0; i < 2 * PARTS; i++)
        w[i] = v_load_bytes((const int8_t *)(q + i * PW));
    UNROLL_FOR (int i = 0; i < PARTS; i++)
        UNROLL_FOR (int t = 0; t < ROWS_AT_ONCE; t++) {
            const vi x = v_repeated(rows[t] + at + i * 2 * FOUR_WORDS, SHARERS);
            v_dot16_into(&acc[2 * t], x, w[2 * i]);
            v_dot16_into(&acc[2 * t + 1], x, w[2 * i + 1]);
        }
}
#endif

/* Convert `keep` bytes of each row to words in L1, and return where they begin. */
INLINE void CAT(floats_words_, DTYPE)(kvb_places k, int at, int keep, const vcodes *codes,
                                      uint8_t *words, const uint8_t **rows)
{
    UNROLL_FOR (int t = 0; t < ROWS_AT_ONCE; t++) {
        vi x[WORDS];
        rows[t] = words + t * WORDS * VB;
        CAT(floats_load_, DTYPE)(kvb_row_at(k, t) + at, codes, keep, x);
        UNROLL_FOR (int w = 0; w < WORDS; w++)
            v_store_bytes(words + (t * WORDS + w) * VB, x[w]);
    }
}

INLINE void CAT(qk_floats_eight_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                         float *scores, const int order)
{
    const int bytes = group->k_dim * ELEMENT;
    const vcodes codes = CAT(codes_of_, DTYPE)();
    prefetch cursor = prefetch_from(&tile->k, bytes);
    for (int t = 0; t < tile->count; t += ROWS_AT_ONCE) {
        const kvb_places k = kvb_rows_from(tile->k.rows, t);
        const uint16_t *q = (const uint16_t *)(const void *)group->prepared->codes;
        vf acc[2 * ROWS_AT_ONCE];
        UNROLL_FOR (int i = 0; i < 2 * ROWS_AT_ONCE; i++)
            acc[i] = v_zero();
        prefetch_of(&cursor, tile, &tile->k, t, order);
        for (int at = 0; at < bytes; at += LINE, q += WORDS * Q_ROWS * PW) {
            _Alignas(LINE) uint8_t words[ROWS_AT_ONCE * WORDS * VB];
            const uint8_t *rows[ROWS_AT_ONCE];
            UNROLL_FOR (int i = 0; i < ROWS_AT_ONCE; i++)
                prefetch_line(&cursor, order);
            if (ELEMENT == 2 && at + LINE <= bytes)
                UNROLL_FOR (int i = 0; i < ROWS_AT_ONCE; i++)
                    rows[i] = kvb_row_at(k, i) + at;
            else if (at + LINE <= bytes)
                CAT(floats_words_, DTYPE)(k, at, VB, &codes, words, rows);
            else
                CAT(floats_words_, DTYPE)(k, at, bytes - at, &codes, words, rows);
            KEEP_IN_MEMORY(words);
            UNROLL_FOR (int w = 0; w < WORDS; w++)
                floats_eight_line(acc, rows, w * VB, q + w * Q_ROWS * PW);
        }
        UNROLL_FOR (int i = 0; i < ROWS_AT_ONCE; i += SHARE)
            eight_scores(acc + 2 * i, scores + t + i, 1.0f);
    }
}
