/* Rows turned (transposed) for more query rows than a call takes: once for all of them, a few rows
 * at a time, into scratch that stays in L1. Then nothing is added across lanes, and each load of
 * the scratch serves eight query rows.
 *
 *   K, cell j       | t0: 4 bytes | t1: 4 bytes | ...     TURNED tokens: 4 codes of i8 each, or
 *   q[h], cell j    | 4 bytes     | the same    | ...     two words
 *
 *   V, a slice      | e0: 4 codes | e1: 4 codes | ...     i8: an element of four tokens
 *   weights[h]      | 4 bytes     | the same    | ...
 *
 * A slice is SLICE_TURNED elements, in two vectors that v_unzip() puts in order. Weights as bytes
 * overwrite the scores that they are made of; the value of byte 1 is stored after them. */

enum { SLICE_TURNED = 2 * VL, CELL_BYTES = 4 * TURNED };

/* Vectors of a cell that are multiplied at a time. */
#define TURNED_AT_ONCE(q_rows) ((q_rows) == Q_ROWS ? 2 : 4)

/* Store LANES rows, turned, from to[0] on. */
INLINE void turned_store(const vi *cells, uint8_t *to)
{
    UNROLL_FOR (int j = 0; j < LANES; j++)
        v_store_bytes(to + j * CELL_BYTES, cells[j]);
}

/* Prefetch a line; called once in each step. */
INLINE void turned_ask(kvb_lines *asked)
{
    kvb_fetch(*asked->next, true);
    asked->next += asked->next < asked->last;
}

static void turn_k_i8(const kvb_tile *tile, kvb_turned piece, int64_t dim, uint8_t *to)
{
    for (int t = piece.first; t < piece.end; t += LANES, to += LINE) {
        const kvb_places rows = kvb_rows_from(tile->k.rows, t);
        for (int64_t at = 0; at < dim; at += VB) {
            const int64_t *places = rows.at;
            vi x[LANES];
            HIDE(places); /* else all addresses are kept, and spill */
            UNROLL_FOR (int i = 0; i < LANES; i++)
                x[i] = v_codes(rows.from + places[i] + at);
            v_turn_square(x);
            turned_store(x, to + at / 4 * CELL_BYTES);
        }
    }
}

/* Compute the scores of a piece, times K's scales. */
INLINE void qk_turned_tile_i8(const kvb_tile *tile, const kvb_group *group, kvb_turned piece,
                              const uint8_t *cells, kvb_lines *asked, float *scores,
                              const int q_rows)
{
    enum { CODES = 8 }; /* least codes of a query row side by side */
    const int vectors = TURNED_AT_ONCE(q_rows), dim = group->k_dim;
    for (int t = piece.first; t < piece.end; t += vectors * VL) {
        const uint8_t *from = cells + 4 * (t - piece.first);
        vi acc[QK_ACC];
        UNROLL_FOR (int i = 0; i < q_rows * vectors; i++)
            acc[i] = v_set_int(group->prepared->first[i / vectors]);
        for (int d = 0; d < dim; d += CODES, from += CODES / 4 * CELL_BYTES) {
            const int8_t *q = group->prepared->codes + dot_code(q_rows, 0, d);
            UNROLL_FOR (int c = 0; c < CODES; c += 4) {
                vi x[4];
                turned_ask(asked);
                UNROLL_FOR (int v = 0; v < vectors; v++)
                    x[v] = v_load_bytes((const int8_t *)from + c * TURNED + v * VB);
                UNROLL_FOR (int h = 0; h < q_rows; h++) {
                    const vi w = dot_four(q + h * WIDTH_OF(q_rows) + c);
                    UNROLL_FOR (int v = 0; v < vectors; v++)
                        v_dot_codes_into(&acc[INDEX(h, q_rows) * vectors + v], x[v], w, DOT_BIAS);
                }
            }
        }
        UNROLL_FOR (int v = 0; v < vectors; v++) {
            const int at = t + v * VL;
            const vf scale =
                tile->k.scale && at < piece.end ? v_load(tile->k.scale + at) : v_set1(1.0f);
            UNROLL_FOR (int h = 0; h < q_rows; h++)
                v_store(scores + h * QUERY_SCORES + at,
                        v_mul(v_mul(v_floats(acc[INDEX(h, q_rows) * vectors + v]),
                                    v_set1(group->prepared->step[h])),
                              scale));
        }
    }
}

/* Turn a piece of V, four rows at a time: both slices of a line, each with all tokens. */
static void turn_v_i8(const kvb_tile *tile, kvb_turned piece, uint8_t *to)
{
    uint8_t *then = to + kvb_turned_slice(&piece);
    for (int t = piece.first; t < piece.end; t += 4, to += 2 * VB, then += 2 * VB) {
        vi x[4];
        UNROLL_FOR (int i = 0; i < 4; i++)
            x[i] =
                v_apart(v_load_bytes((const int8_t *)kvb_row_at(tile->v.rows, t + i) + piece.at));
        UNROLL_FOR (int upper = 0; upper < 2; upper++) {
            const vi ab = v_zip_bytes(x[0], x[1], upper), cd = v_zip_bytes(x[2], x[3], upper);
            v_store_bytes(upper ? then : to, v_zip_words(ab, cd, false));
            v_store_bytes((upper ? then : to) + VB, v_zip_words(ab, cd, true));
        }
    }
}

/* Make the weights as dot_weights_i8 does, four vectors at a time. Weights after the last vector
 * are not read. */
static void weigh_i8(const kvb_tile *tile, const kvb_group *group, float *p)
{
    const int end = (int)round_up(tile->count, LANES);
    float most[Q_ROWS];
    for (int h = 0; h < group->slots; h++) {
        vf largest = v_zero();
        for (int t = 0; t < end; t += VL)
            largest = v_larger(v_abs(v_load(p + h * QUERY_SCORES + t)), largest);
        most[h] = v_hmax(largest);
    }
    for (int h = 0; h < group->slots; h++, p += QUERY_SCORES) {
        const vf inverse = v_set1(dot_steps(DOT_WEIGHT, most[h]));
        for (int t = 0; t < end; t += 4 * VL) {
            vf x[4];
            UNROLL_FOR (int i = 0; i < 4; i++)
                x[i] = v_mul(v_load(p + t + i * VL), inverse);
            v_store_bytes((uint8_t *)(void *)p + t, v_turned_lanes(v_quads_of(x)));
        }
        p[TILE] = most[h] / DOT_WEIGHT;
    }
}

/* Multiply slices of a piece: both of a line at a time, if registers hold the sums. */
INLINE void pv_turned_slices(const kvb_group *group, kvb_turned piece, const uint8_t *from,
                             kvb_lines *asked, int64_t at, const float *p, const int q_rows,
                             const int slices)
{
    const int64_t slice = kvb_turned_slice(&piece);
    const float *rescale = piece.first ? ones : group->rescale;
    const int all = 2 * slices;
    vi sum[PV_ACC];
    UNROLL_FOR (int i = 0; i < all * q_rows; i++)
        sum[i] = v_none();
    for (int t = piece.first; t < piece.end; t += 4, from += 2 * VB) {
        vi x[4];
        turned_ask(asked);
        UNROLL_FOR (int i = 0; i < all; i++) {
            x[i] = v_load_bytes((const int8_t *)from + i / 2 * slice + i % 2 * VB);
            v_hide(&x[i]); /* else some query rows load it again */
        }
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            const vi w = dot_four((const uint8_t *)(const void *)(p + h * QUERY_SCORES) + t);
            UNROLL_FOR (int i = 0; i < all; i++)
                v_dot_weights_into(&sum[INDEX(h, q_rows) * all + i], w, x[i]);
        }
    }
    UNROLL_FOR (int i = 0; i < all * q_rows; i += 2) {
        const int h = i / all;
        const int64_t d = at + i % all * VL;
        float *to = group->acc + h * group->v_pad + d;
        const vf step = v_set1(p[h * QUERY_SCORES + TILE]), again = v_set1(rescale[h]);
        vf found[2] = {v_floats(sum[i]), v_floats(sum[i + 1])};
        v_unzip(found);
        UNROLL_FOR (int j = 0; j < 2; j++)
            if (d + j * VL < group->v_pad)
                v_store(to + j * VL, v_fma(found[j], step, v_mul(v_load(to + j * VL), again)));
    }
}

INLINE void pv_turned_tile_i8(const kvb_group *group, kvb_turned piece, const uint8_t *from,
                              kvb_lines *asked, const float *p, const int q_rows)
{
    const int slices = q_rows == Q_ROWS ? 1 : 2;
    for (int s = 0; s < 2; s += slices)
        if (piece.at + s * SLICE_TURNED < group->v_pad)
            pv_turned_slices(group, piece, from + s * kvb_turned_slice(&piece), asked,
                             piece.at + s * SLICE_TURNED, p, q_rows, slices);
}

/* The lines to prefetch are kept in registers, not behind a pointer. */
#define TURNED_QK_OF(way, q_rows)                                                                 \
    static NOINLINE void CAT(qk_turned##q_rows##_,                                                \
                             way)(const kvb_tile *tile, const kvb_group *group, kvb_turned piece, \
                                  const uint8_t *from, kvb_lines *asked, float *scores)           \
    {                                                                                             \
        kvb_lines lines = *asked;                                                                 \
        CAT(qk_turned_tile_, way)(tile, group, piece, from, &lines, scores, q_rows);              \
        *asked = lines;                                                                           \
    }
#define TURNED_QK(way)   \
    TURNED_QK_OF(way, 1) \
    TURNED_QK_OF(way, 2) \
    TURNED_QK_OF(way, 4) \
    TURNED_QK_OF(way, 8)
#define TURNED_PV_OF(way, q_rows)                                                                 \
    static NOINLINE void CAT(pv_turned##q_rows##_, way)(const kvb_group *group, kvb_turned piece, \
                                                        const uint8_t *from, kvb_lines *asked,    \
                                                        const float *p)                           \
    {                                                                                             \
        kvb_lines lines = *asked;                                                                 \
        CAT(pv_turned_tile_, way)(group, piece, from, &lines, p, q_rows);                         \
        *asked = lines;                                                                           \
    }
#define TURNED_PV(way)   \
    TURNED_PV_OF(way, 1) \
    TURNED_PV_OF(way, 2) \
    TURNED_PV_OF(way, 4) \
    TURNED_PV_OF(way, 8)
TURNED_QK(i8)
TURNED_PV(i8)

/* The functions of 8-bit floats. */
#define QK_TURNED(word, name)                 \
    .qk[WAY_DOT_##name].turn = turn_k_##word, \
    .qk[WAY_DOT_##name].turned = BY_CLASS(qk_turned, word),
