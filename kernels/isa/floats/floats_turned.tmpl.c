/* K of DTYPE, 8-bit floats, turned to words for more query rows than a call takes: see
 * dot/turned.tmpl.c. V is read in place: turning it gained nothing at 16 and 32 query rows. Turning
 * bf16 gained nothing either, because its rows need no conversion. */

static void CAT(turn_k_, DTYPE)(const kvb_tile *tile, kvb_turned piece, int64_t dim, uint8_t *to)
{
    const vcodes codes = CAT(codes_of_, DTYPE)();
    for (int t = piece.first; t < piece.end; t += LANES, to += LINE) {
        const kvb_places rows = kvb_rows_from(tile->k.rows, t);
        for (int64_t at = 0; at < dim; at += PIECE) {
            const int keep = (int)at_most(VB, dim - at);
            const int64_t *places = rows.at;
            vi x[LANES];
            HIDE(places); /* else all addresses are kept, and spill */
            UNROLL_FOR (int i = 0; i < LANES; i++)
                x[i] = v_load_bytes((const int8_t *)rows.from + places[i] + at);
            if (keep < VB)
                UNROLL_FOR (int i = 0; i < LANES; i++)
                    x[i] = v_keep_bytes(x[i], keep);
            v_turn_square(x);
            UNROLL_FOR (int j = 0; j < LANES; j++) {
                const vi both[2] = {v_lower_bytes(&codes, x[j]), v_upper_bytes(&codes, x[j])};
                uint8_t *cell = to + (at / 2 + 2 * j) * CELL_BYTES;
                v_store_bytes(cell, v_entries(both, v_words_of_lanes(false)));
                v_store_bytes(cell + CELL_BYTES, v_entries(both, v_words_of_lanes(true)));
            }
        }
    }
}

/* Compute the scores of a piece. Elements are in order; q is as prepared. */
INLINE void CAT(qk_turned_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group,
                                        kvb_turned piece, const uint8_t *cells, kvb_lines *asked,
                                        float *scores, const int q_rows)
{
    enum { ELEMENTS = 8 }; /* least elements of a query row side by side */
    const int vectors = TURNED_AT_ONCE(q_rows), dim = group->k_dim;
    const uint16_t *words = (const uint16_t *)(const void *)group->prepared->codes;
    (void)tile;
    for (int t = piece.first; t < piece.end; t += vectors * VL) {
        const uint8_t *from = cells + 4 * (t - piece.first);
        vf acc[QK_ACC];
        UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
            acc[i] = v_zero();
        for (int d = 0; d < dim; d += ELEMENTS, from += ELEMENTS / 2 * CELL_BYTES) {
            const int at = (int)v_zipped_at(d / 16 * 16) + d % 16 / 8 * ZIPPED_EIGHT;
            const uint16_t *q = words + floats_word(at, 0, q_rows);
            UNROLL_FOR (int c = 0; c < ELEMENTS; c += 2) {
                vi x[4];
                turned_ask(asked);
                UNROLL_FOR (int v = 0; v < vectors; v++)
                    x[v] = v_load_bytes((const int8_t *)from + c / 2 * CELL_BYTES + v * VB);
                UNROLL_FOR (int h = 0; h < q_rows; h++) {
                    const vi w = dot_four(q + h * PART_WORDS(q_rows) + c);
                    UNROLL_FOR (int v = 0; v < vectors; v++)
                        v_dot16_into(&acc[INDEX(h, q_rows) * vectors + v], x[v], w);
                }
            }
        }
        UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
            v_store(scores + i / vectors * QUERY_SCORES + t + i % vectors * VL, acc[i]);
    }
}

TURNED_QK(DTYPE)
