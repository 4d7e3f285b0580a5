/* Rows of DTYPE turned for more query rows than a call folds, as words: dot/turned.tmpl.c. */

static void CAT(turn_k_, DTYPE)(const kvb_tile *tile, int32_t first, int64_t dim, uint8_t *to)
{
    const vcodes codes = CAT(codes_of_, DTYPE)();
    for (int t = first; t < first + TURNED && t < tile->count; t += LANES, to += LINE) {
        const kvb_places rows = kvb_rows_from(tile->k.rows, t);
        for (int64_t at = 0; at < dim; at += PIECE) {
            const int keep = (int)at_most(VB, (dim - at) * ELEMENT);
            vi x[LANES];
            UNROLL_FOR (int i = 0; i < LANES; i++)
                x[i] = v_load_bytes((const int8_t *)kvb_row_at(rows, i) + at * ELEMENT);
            if (keep < VB)
                UNROLL_FOR (int i = 0; i < LANES; i++)
                    x[i] = v_keep_bytes(x[i], keep);
            v_turn_square(x);
#if ELEMENT == 1
            UNROLL_FOR (int j = 0; j < LANES; j++) {
                vi words[2];
                v_zip_neighbours(v_lower_bytes(&codes, x[j]), v_upper_bytes(&codes, x[j]), words);
                v_store_bytes(to + (at / 2 + 2 * j) * CELL_BYTES, words[0]);
                v_store_bytes(to + (at / 2 + 2 * j + 1) * CELL_BYTES, words[1]);
            }
#else
            (void)codes;
            turned_store(x, to + at / 2 * CELL_BYTES);
#endif
        }
    }
}

/* Scores of TURNED tokens, but only of vectors of the first `count`. Elements are in their order,
 * and q as it was prepared. */
INLINE void CAT(qk_turned_tile_, DTYPE)(const kvb_group *group, const uint8_t *cells, int32_t count,
                                        float *scores, const int q_rows)
{
    enum { ELEMENTS = 8 }; /* of a query row side by side, at least */
    const int vectors = TURNED_AT_ONCE(q_rows), dim = group->k_dim;
    const uint16_t *words = (const uint16_t *)(const void *)group->prepared->codes;
    for (int t = 0; t < count; t += vectors * VL) {
        const uint8_t *from = cells + 4 * t;
        vf acc[QK_ACC];
        UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
            acc[i] = v_zero();
        for (int d = 0; d < dim; d += ELEMENTS, from += ELEMENTS / 2 * CELL_BYTES) {
            const int at = ELEMENT == 2 ? d : (int)v_zipped_at(d / 16 * 16) + d % 16 / 8 * ZIPPED_EIGHT;
            const uint16_t *q = words + floats_word(at, 0, q_rows);
            UNROLL_FOR (int c = 0; c < ELEMENTS; c += 2) {
                vi x[4];
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

/* Two rows at a time: the slices of a line, each of which has all tokens. */
static void CAT(turn_v_, DTYPE)(const kvb_tile *tile, kvb_turned piece, uint8_t *to)
{
    static const _Alignas(LINE) uint8_t nothing[LINE];
    const vcodes codes = CAT(codes_of_, DTYPE)();
    const int64_t slice = kvb_turned_slice(&piece, 2);
    for (int t = piece.first; t < piece.end; t += 2, to += 2 * VB) {
        vi x[2];
        UNROLL_FOR (int i = 0; i < 2; i++) {
            const bool live = t + i >= tile->lead && t + i < tile->count;
            const uint8_t *row = live ? kvb_row_at(tile->v.rows, t + i) + piece.at : nothing;
            x[i] = v_load_bytes((const int8_t *)row);
        }
#if ELEMENT == 1
        const vi a = v_apart(x[0]), b = v_apart(x[1]);
        UNROLL_FOR (int upper = 0; upper < 2; upper++) {
            vi words[2];
            floats_looked_up(&codes, v_zip_bytes(a, b, upper), words);
            v_store_bytes(to + upper * slice, words[0]);
            v_store_bytes(to + upper * slice + VB, words[1]);
        }
#else
        (void)codes, (void)slice;
        v_store_bytes(to, v_zip_words(x[0], x[1], false));
        v_store_bytes(to + VB, v_zip_words(x[0], x[1], true));
#endif
    }
}

INLINE void CAT(pv_turned_tile_, DTYPE)(const kvb_group *group, kvb_turned piece,
                                        const uint8_t *from, const float *p, const int q_rows)
{
    const float *rescale = piece.first ? ones : group->rescale;
    const int64_t end = at_most(piece.at / ELEMENT + PIECE, group->v_pad);
    for (int64_t at = piece.at / ELEMENT; at < end; at += SLICE_TURNED) {
        vf sum[PV_ACC];
        UNROLL_FOR (int i = 0; i < 2 * q_rows; i++)
            sum[i] = v_zero();
        for (int t = piece.first; t < piece.end; t += 2, from += 2 * VB) {
            const vi x = v_load_bytes((const int8_t *)from),
                     y = v_load_bytes((const int8_t *)from + VB);
            UNROLL_FOR (int h = 0; h < q_rows; h++) {
                const vi w =
                    dot_four((const uint16_t *)(const void *)(p + h * QUERY_SCORES) + t);
                v_dot16_into(&sum[2 * INDEX(h, q_rows)], x, w);
                v_dot16_into(&sum[2 * INDEX(h, q_rows) + 1], y, w);
            }
        }
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            float *to = group->acc + h * group->v_pad + at;
            const vf again = v_set1(rescale[h]);
            v_unzip(sum + 2 * h);
            v_store(to, v_fma(v_load(to), again, sum[2 * h]));
            if (at + VL < group->v_pad)
                v_store(to + VL, v_fma(v_load(to + VL), again, sum[2 * h + 1]));
        }
    }
}

TURNED_STAGE(DTYPE)
