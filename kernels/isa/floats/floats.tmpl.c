/* dot over bf16 and 8-bit floats, on tiers that multiply bf16: what all ways of multiplying them
 * have in common. The rules stand in tier/dot.h. A code of 8 bits is a bf16, which a table has; its
 * two bytes are looked up by themselves.
 *
 *   codes        | c0 c1 c2 c3 ...  |    VB of a row, or of two rows in turn
 *   lower bytes  | l0 l1 l2 l3 ...  |
 *   upper bytes  | u0 u1 u2 u3 ...  |    with the signs of the codes
 *   zipped       | l0 u0 | l1 u1 | ...   a word is a bf16: two vectors
 *
 * Elements behind a row's dim may be anything, and NaN times zero is none: K is cut to its dim. */

enum { PW = VB / 2 };  /* words of a vector */
#define FLOATS_WHOLE 2 /* most query rows that take rows whole */

/* Elements of a row that a load takes, and the vectors of words that they are. */
#define PIECE (VB / ELEMENT)
#define WORDS (2 / ELEMENT)

/* Words of a query row that lie side by side in q: a vector, or of eight, where four share a
 * vector, a fourth of it. */
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

/* The words of a query row, in parts of a length that is a constant. */
INLINE void floats_parts(uint16_t *to, const uint16_t *own, int64_t end, int q_row, int slots,
                         const int part)
{
    for (int64_t d = 0; d < end; d += part)
        memcpy(to + d * slots + q_row * part, own + d, (size_t)part * sizeof *own);
}

/* q as words, each piece in the order in which codes are zipped: [dim / part][slots][part], zero
 * behind dim */
INLINE void floats_query(const kvb_group *group, const int words)
{
    _Alignas(LINE) uint16_t own[DIM_MAX];
    uint16_t *to = (uint16_t *)(void *)group->prepared->codes;
    const int64_t piece = words * PW, end = round_up(group->k_dim, piece);
    for (int h = 0; h < group->slots; h++) {
        memset(own, 0, (size_t)round_up(end, LINE) * sizeof *own); /* of a row before, too */
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

/* Where words of q are that codes of 8 bits meet: those of a square, 16 elements from `at` on; and
 * from there those of a cell of four, `in` elements further. */
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

/* The weights of a query row as bf16: from one row to the next, so that those of a token lie in
 * different sets of a cache. */
enum { FLOATS_WEIGHTS = TILE + 2 * LANES };

/* Of all query rows, up to a multiple of LANES tokens. */
INLINE void floats_weights(const kvb_tile *tile, const float *p, const int q_rows,
                           uint16_t *weights)
{
    const int end = (int)round_up(tile->count, LANES);
    for (int h = 0; h < q_rows; h++)
        for (int t = 0; t < end; t += VL)
            v_store_rounded(weights + h * FLOATS_WEIGHTS + t, v_load(p + h * QUERY_SCORES + t));
}

/* Codes of 8 bits as two vectors of words. */
INLINE void floats_looked_up(const vcodes *codes, vi x, vi *to)
{
    const vi lower = v_lower_bytes(codes, x), upper = v_upper_bytes(codes, x);
    to[0] = v_zip_bytes(lower, upper, false);
    to[1] = v_zip_bytes(lower, upper, true);
}

/* Of transposed K and V of 8 bits: vectors of words that a line is; most query rows whose sums of
 * it registers hold; and vectors of words that are made together, beside PV_ACC sums. */
enum {
    CELL_VECTORS = 2 * LANES / VL,
    CELL_SUMS = QK_ACC / CELL_VECTORS,
    QUAD_SUMS = PV_ACC / CELL_VECTORS,
    WORDS_AT_ONCE = 8
};
_Static_assert(2 * WORDS_AT_ONCE >= PV_ACC, "a line's words are made in two turns");

/* A tile's weights, and of its tokens 0xff where they are live, else 0. */
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
enum { FLOATS_PARTS = 4 }; /* of a slice at most: PW elements each, of which two vectors are sums */

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
