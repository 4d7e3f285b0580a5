/* Rows turned for more query rows than a call folds: once for all of them, a few at a time, into
 * scratch that stays in L1. No sum is across lanes then, and each load of the scratch meets eight
 * query rows.
 *
 *   K, cell j       | t0: 4 bytes | t1: 4 bytes | ...     TURNED tokens: 4 codes of i8 each, or two
 *   q[h], cell j    | 4 bytes     | the same    | ...     words
 *
 *   V, of a slice   | e0: 4 bytes | e1: 4 bytes | ...     4 bytes: an element of four tokens, or of
 *   weights[h]      | 4 bytes     | the same    | ...     two as words
 *
 * A slice is SLICE_TURNED elements, as two vectors that v_unzip() puts in order. Weights take the
 * place of the scores that they are made of, with what one is worth behind them. */

enum { SLICE_TURNED = 2 * VL, CELL_BYTES = 4 * TURNED };

/* Vectors of a cell that are multiplied at a time. */
#define TURNED_AT_ONCE(q_rows) ((q_rows) == Q_ROWS ? 2 : 4)

/* LANES rows from byte `at` on, turned, to the cells from to[0] on. */
INLINE void turned_store(const vi *cells, uint8_t *to)
{
    UNROLL_FOR (int j = 0; j < LANES; j++)
        v_store_bytes(to + j * CELL_BYTES, cells[j]);
}

static void turn_k_i8(const kvb_tile *tile, int32_t first, int64_t dim, uint8_t *to)
{
    for (int t = first; t < first + TURNED && t < tile->count; t += LANES, to += LINE) {
        const kvb_places rows = kvb_rows_from(tile->k.rows, t);
        for (int64_t at = 0; at < dim; at += VB) {
            vi x[LANES];
            UNROLL_FOR (int i = 0; i < LANES; i++)
                x[i] = v_codes(kvb_row_at(rows, i) + at);
            v_turn_square(x);
            turned_store(x, to + at / 4 * CELL_BYTES);
        }
    }
}

/* Scores of TURNED tokens, but only of vectors of the first `count`. */
INLINE void qk_turned_tile_i8(const kvb_group *group, const uint8_t *cells, int32_t count,
                              float *scores, const int q_rows)
{
    enum { CODES = 8 }; /* of a query row side by side, at least */
    const int vectors = TURNED_AT_ONCE(q_rows), dim = group->k_dim;
    for (int t = 0; t < count; t += vectors * VL) {
        const uint8_t *from = cells + 4 * t;
        vi acc[QK_ACC];
        UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
            acc[i] = v_set_int(group->prepared->first[i / vectors]);
        for (int d = 0; d < dim; d += CODES, from += CODES / 4 * CELL_BYTES) {
            const int8_t *q = group->prepared->codes + dot_code(q_rows, 0, d);
            UNROLL_FOR (int c = 0; c < CODES; c += 4) {
                vi x[4];
                UNROLL_FOR (int v = 0; v < vectors; v++)
                    x[v] = v_load_bytes((const int8_t *)from + c * TURNED + v * VB);
                UNROLL_FOR (int h = 0; h < q_rows; h++) {
                    const vi w = dot_four(q + h * WIDTH_OF(q_rows) + c);
                    UNROLL_FOR (int v = 0; v < vectors; v++)
                        v_dot_codes_into(&acc[INDEX(h, q_rows) * vectors + v], x[v], w, DOT_BIAS);
                }
            }
        }
        UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
            v_store(scores + i / vectors * QUERY_SCORES + t + i % vectors * VL,
                    v_mul(v_floats(acc[i]), v_set1(group->prepared->step[i / vectors])));
    }
}

/* Four rows at a time: both slices of a line, each of which has all tokens. */
static void turn_v_i8(const kvb_tile *tile, kvb_turned piece, uint8_t *to)
{
    uint8_t *then = to + kvb_turned_slice(&piece, 4);
    for (int t = piece.first; t < piece.end; t += 4, to += 2 * VB, then += 2 * VB) {
        vi x[4];
        UNROLL_FOR (int i = 0; i < 4; i++)
            x[i] = v_apart(
                v_load_bytes((const int8_t *)kvb_row_at(tile->v.rows, t + i) + piece.at));
        UNROLL_FOR (int upper = 0; upper < 2; upper++) {
            const vi ab = v_zip_bytes(x[0], x[1], upper), cd = v_zip_bytes(x[2], x[3], upper);
            v_store_bytes(upper ? then : to, v_zip_words(ab, cd, false));
            v_store_bytes((upper ? then : to) + VB, v_zip_words(ab, cd, true));
        }
    }
}

/* As dot_weights_i8 makes them. */
static void weigh_i8(const kvb_tile *tile, const kvb_group *group, float *p)
{
    const int end = (int)round_up(tile->count, LANES);
    for (int h = 0; h < group->slots; h++, p += QUERY_SCORES) {
        vf largest = v_zero();
        for (int t = 0; t < end; t += VL)
            largest = v_max(largest, v_abs(v_number(v_load(p + t))));
        const float most = v_hmax(largest);
        const vf inverse = v_set1(dot_steps(DOT_WEIGHT, most));
        for (int t = 0; t < end; t += VL)
            v_store_i8((uint8_t *)(void *)p + t,
                       v_round(v_mul(v_number(v_load(p + t)), inverse)));
        p[TILE] = most / DOT_WEIGHT;
    }
}

INLINE void pv_turned_tile_i8(const kvb_group *group, kvb_turned piece, const uint8_t *from,
                              const float *p, const int q_rows)
{
    const float *rescale = piece.first ? ones : group->rescale;
    for (int64_t at = piece.at; at < at_most(piece.at + LINE, group->v_pad); at += SLICE_TURNED) {
        vi sum[PV_ACC];
        UNROLL_FOR (int i = 0; i < 2 * q_rows; i++)
            sum[i] = v_none();
        for (int t = piece.first; t < piece.end; t += 4, from += 2 * VB) {
            vi x[2] = {v_load_bytes((const int8_t *)from), v_load_bytes((const int8_t *)from + VB)};
            v_hide(&x[0]), v_hide(&x[1]);
            UNROLL_FOR (int h = 0; h < q_rows; h++) {
                const vi w = dot_four((const uint8_t *)(const void *)(p + h * QUERY_SCORES) + t);
                v_dot_weights_into(&sum[2 * INDEX(h, q_rows)], w, x[0]);
                v_dot_weights_into(&sum[2 * INDEX(h, q_rows) + 1], w, x[1]);
            }
        }
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            float *to = group->acc + h * group->v_pad + at;
            const vf step = v_set1(p[h * QUERY_SCORES + TILE]), again = v_set1(rescale[h]);
            vf found[2] = {v_floats(sum[2 * h]), v_floats(sum[2 * h + 1])};
            v_unzip(found);
            v_store(to, v_fma(found[0], step, v_mul(v_load(to), again)));
            if (at + VL < group->v_pad)
                v_store(to + VL, v_fma(found[1], step, v_mul(v_load(to + VL), again)));
        }
    }
}

#define TURNED_STAGE_OF(way, q_rows)                                                             \
    static NOINLINE void CAT(qk_turned##q_rows##_, way)(                                         \
        const kvb_group *group, const uint8_t *cells, int32_t count, float *scores)              \
    {                                                                                            \
        CAT(qk_turned_tile_, way)(group, cells, count, scores, q_rows);                          \
    }                                                                                            \
    static NOINLINE void CAT(pv_turned##q_rows##_, way)(const kvb_group *group, kvb_turned piece, \
                                                        const uint8_t *from, const float *p)     \
    {                                                                                            \
        CAT(pv_turned_tile_, way)(group, piece, from, p, q_rows);                                \
    }
#define TURNED_STAGE(way)   \
    TURNED_STAGE_OF(way, 1) \
    TURNED_STAGE_OF(way, 2) \
    TURNED_STAGE_OF(way, 4) \
    TURNED_STAGE_OF(way, 8)
TURNED_STAGE(i8)

/* Of a half. */
#define QK_TURNED(way) .turn = CAT(turn_k_, way), .turned = BY_CLASS(qk_turned, way),
#define PV_TURNED(way, maker) \
    .turn = CAT(turn_v_, way), .weigh = CAT(weigh_, maker), .turned = BY_CLASS(pv_turned, way),
