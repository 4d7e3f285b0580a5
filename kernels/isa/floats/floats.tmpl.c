/* dot over bf16 and 8-bit floats, on tiers that multiply bf16: what all ways of multiplying have in
 * common. The rules are in tier/dot.h. An 8-bit code is converted to bf16 with a table; the two
 * bytes are looked up one by one.
 *
 *   codes        | c0 c1 c2 c3 ...  |    VB of a row, or of two rows in turn
 *   lower bytes  | l0 l1 l2 l3 ...  |
 *   upper bytes  | u0 u1 u2 u3 ...  |    with the signs of the codes
 *   zipped       | l0 u0 | l1 u1 | ...   a word is a bf16: two vectors
 *
 * Elements after a row's dim may be NaN, and NaN times zero is NaN: so K is cut to its dim. */

enum { PW = VB / 2 };  /* words of a vector */
#define FLOATS_WHOLE 2 /* most query rows for which rows are read whole */

/* Elements of a row in one load, and how many vectors of words they make. */
#define PIECE (VB / ELEMENT)
#define WORDS (2 / ELEMENT)

/* Words of one query row stored side by side in q if four query rows share a vector (groups of
 * eight). Else it is a whole vector. */
enum { FOUR_WORDS = 8 };
#ifdef V_FOURS
#define PART_WORDS(slots) ((slots) == Q_ROWS ? FOUR_WORDS : PW)
#else
#define PART_WORDS(slots) PW
#endif
INLINE int64_t floats_word(int64_t d, int64_t q_row, int slots)
{
    const int64_t part = PART_WORDS(slots);
    return (d / part * slots + q_row) * part + d % part;
}

/* Store the words of a query row in parts of a constant length. */
INLINE void floats_parts(uint16_t *to, const uint16_t *own, int64_t end, int q_row, int slots,
                         const int part)
{
    for (int64_t d = 0; d < end; d += part)
        memcpy(to + d * slots + q_row * part, own + d, (size_t)part * sizeof *own);
}

/* Make q as words: [dim / part][slots][part], zero after dim. Each piece is in the order in which
 * codes are zipped. */
INLINE void floats_query(const kvb_group *group, const int words)
{
    _Alignas(LINE) uint16_t own[DIM_MAX];
    uint16_t *to = (uint16_t *)(void *)group->prepared->codes;
    const int64_t piece = words * PW, end = round_up(group->k_dim, piece);
    for (int h = 0; h < group->slots; h++) {
        memset(own, 0, (size_t)round_up(end, LINE) * sizeof *own); /* clears the row before, too */
        for (int64_t d = 0; d < group->k_pad; d += VL)
            v_store_rounded(own + d, dot_floats(group, h, d));
        KEEP_IN_MEMORY(own);
        for (int64_t d = 0; words > 1 && d < end; d += piece) {
            vi x[2] = {v_load_bytes((const int8_t *)(own + d)),
                       v_load_bytes((const int8_t *)(own + d + PW))};
            v_as_zipped(x);
            v_store_bytes((uint8_t *)(own + d), x[0]);
            v_store_bytes((uint8_t *)(own + d + PW), x[1]);
        }
        if (PART_WORDS(group->slots) == PW)
            floats_parts(to, own, end, h, group->slots, PW);
        else
            floats_parts(to, own, end, h, group->slots, FOUR_WORDS);
    }
}

/* Return the words of q for 8-bit codes of a square, 16 elements from `at` on; and from there those
 * for a cell of four, `in` elements further. */
INLINE const uint16_t *floats_square(const kvb_group *group, int q_row, int slots, int at)
{
    return (const uint16_t *)(const void *)group->prepared->codes +
           floats_word(v_zipped_at(at), q_row, slots);
}
INLINE int floats_cell(const int slots, const int in)
{
    const int next = ZIPPED_EIGHT % PART_WORDS(slots) ? ZIPPED_EIGHT : ZIPPED_EIGHT * slots;
    return in / 8 * next + in % 8;
}

/* Words from the bf16 weights of one query row to the next. Weights of one token are then in
 * different cache sets. */
enum { FLOATS_WEIGHTS = TILE + 2 * LANES };

/* Make the weights of all query rows, up to a multiple of LANES tokens. */
INLINE void floats_weights(const kvb_tile *tile, const float *p, const int q_rows,
                           uint16_t *weights)
{
    const int end = (int)round_up(tile->count, LANES);
    for (int h = 0; h < q_rows; h++)
        for (int t = 0; t < end; t += VL)
            v_store_rounded(weights + h * FLOATS_WEIGHTS + t, v_load(p + h * QUERY_SCORES + t));
}

/* Look up 8-bit codes: two vectors of words. */
INLINE void floats_looked_up(const vcodes *codes, vi x, vi *to)
{
    const vi lower = v_lower_bytes(codes, x), upper = v_upper_bytes(codes, x);
    to[0] = v_zip_bytes(lower, upper, false);
    to[1] = v_zip_bytes(lower, upper, true);
}

/* For transposed 8-bit K and V: vectors of words that a line makes; most query rows whose sums of a
 * line fit in registers; vectors of words that are made at a time, beside PV_ACC sums. */
enum {
    CELL_VECTORS = 2 * LANES / VL,
    CELL_SUMS = QK_ACC / CELL_VECTORS,
    QUAD_SUMS = PV_ACC / CELL_VECTORS,
    WORDS_AT_ONCE = 8
};
_Static_assert(2 * WORDS_AT_ONCE >= PV_ACC, "a line's words are made in two turns");

/* A tile's weights, and a byte for each token: 0xff if the token belongs to the tile, else 0. */
typedef struct floats_quads {
    uint16_t weights[Q_ROWS * FLOATS_WEIGHTS];
    uint8_t live[TILE + VB];
} floats_quads;

INLINE void floats_quads_of(const kvb_tile *tile, const float *p, const int q_rows,
                            floats_quads *quads)
{
    const int end = (int)round_up(tile->count, LANES);
    floats_weights(tile, p, q_rows, quads->weights);
    for (int t = 0; t < end; t += VB)
        v_store_bytes(quads->live + t, v_set_int(-1));
    for (int t = 0; t < tile->lead; t++)
        quads->live[t] = 0;
    for (int t = tile->count; t < end; t++)
        quads->live[t] = 0;
    KEEP_IN_MEMORY(*quads);
}
enum { FLOATS_PARTS = 4 }; /* most parts of a slice: PW elements each, with two vectors of sums */

#define DTYPE bf16
#define ELEMENT 2
#include "isa/floats/floats_kernel.tmpl.c"

#define EACH "isa/floats/floats_kernel.tmpl.c"
#include "isa/row/floats8.tmpl.c"

#undef PIECE
#undef WORDS

#define QK_FLOATS(word, name)                         \
    .qk[WAY_DOT_##name] = {                           \
        .half = {.most = Q_ROWS,                      \
                 .shared = QK_MOST,                   \
                 .step = floats_piece_##word,         \
                 .whole = whole_floats_##word},       \
        .prepare_query = prepare_query_floats_##word, \
        .rows = BY_CLASS(qk_floats, word),            \
        .transposed = BY_CLASS(qkt_floats, word),     \
        .shared_transposed = floats_sums_##word,      \
    },
#define PV_DOT_FLOATS(word, name)                \
    .pv[WAY_DOT_##name] = {                      \
        .half = {.most = Q_ROWS,                 \
                 .shared = floats_shared_##word, \
                 .step = floats_piece_##word,    \
                 .whole = whole_floats_##word},  \
        .rows = BY_CLASS(pv_floats, word),       \
    },
#define PV_DOT_QUADS(word, name)                                 \
    .pv[WAY_DOT_##name].transposed = BY_CLASS(pvt_floats, word), \
    .pv[WAY_DOT_##name].shared_transposed = QUAD_SUMS,
