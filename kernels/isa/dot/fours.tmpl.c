/* dot of packed rows if a vector holds four packs of a row, each in a 128-bit lane (V_FOUR_PACKS).
 * Four rows are transposed in registers, so that a lane of a sum is of one pack. Lanes are added
 * once for all packs of a row, and the scales of four packs and four rows are one vector.
 *
 *   K, x[j]        | pack 0: row t's cell j | row t + 1's | t + 2 | t + 3 | pack 1: ... | 2 | 3 |
 *   q[h], cell j   | the four bytes of q for cell j, four times            |             |   |   |
 *
 *   V, x[j]        | pack 0: element 4 j of rows t to t + 3 | 4 j + 1 | .. | pack 1: ... | 2 | 3 |
 *   weights        | those of the four rows in pack 0, four times          |             |   |   |
 */
#define FOUR_ROWS(rows, t)                                                      \
    {kvb_row_at(rows, t), kvb_row_at(rows, (t) + 1), kvb_row_at(rows, (t) + 2), \
     kvb_row_at(rows, (t) + 3)}

/* Whether rows of `dim` elements are read in this way: if at most one of four packs is missing.
 * Else vectors of two packs are faster. */
INLINE bool fours_take(int64_t dim) { return dot_packs_count(dim) - (dim + 31) / 32 < 2; }

/* The part of a query row's q for four packs: for cell j, the bytes of all four packs, each four
 * times. */
enum { FOURS_CELLS = 8 };
typedef struct fours_part {
    float step[VL];
    int32_t first[VL];
    int8_t codes[FOURS_CELLS * VB];
} fours_part;

INLINE void fours_parts_make(fours_part *parts, const dot_pack *packs, int64_t count, int64_t slots)
{
    enum { STEP = FOURS_CELLS, BEGIN, WORDS };
    for (int64_t i = 0; i < count / 4 * slots; i++) {
        int32_t words[WORDS][4];
        for (int n = 0; n < 4; n++) {
            const dot_pack *from = packs + (i / slots * 4 + n) * slots + i % slots;
            for (int j = 0; j < FOURS_CELLS; j++)
                memcpy(&words[j][n], from->codes + 4 * j, sizeof **words);
            memcpy(&words[STEP][n], &from->step, sizeof **words);
            words[BEGIN][n] = from->begin;
        }
        KEEP_IN_MEMORY(words);
        for (int j = 0; j < FOURS_CELLS; j++)
            v_store_bytes((uint8_t *)parts[i].codes + j * VB, v_each_of(words[j]));
        v_store_ints((int32_t *)(void *)parts[i].step, v_each_of(words[STEP]));
        v_store_ints(parts[i].first, v_each_of(words[BEGIN]));
    }
}

/* Prefetch `lines` lines of each of four rows. Four packs, or three, count as two lines. */
INLINE void fours_prefetch(prefetch *cursor, const int lines, const int order)
{
    UNROLL_FOR (int i = 0; i < 4 * lines; i++)
        prefetch_line(cursor, order);
}

/* A tile's weights for four packs, bytes [tokens / 4][4 packs][4 tokens]. In the lane of each pack:
 * the value of byte 1, and the start value of sums. */
typedef struct fours_weights {
    int8_t bytes[Q_ROWS][4 * TILE];
    float step[Q_ROWS][VL];
    int32_t first[Q_ROWS][VL];
} fours_weights;

/* Make the weights from scales [quads][4 packs][4 tokens] and the largest weight of each lane. */
INLINE void fours_bytes(fours_weights *w, const uint16_t *scales, const vf *most, const float *p,
                        int end, const int q_rows, const int bias)
{
    const vf levels = v_set1(DOT_WEIGHT);
    vf inverse[Q_ROWS];
    vi total[Q_ROWS];
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vf all = v_lanes_max(most[h]), steps = v_number(v_div(levels, all));
        inverse[h] = v_unless_below(steps, v_sub(v_set1(3.0e38f), steps), v_zero());
        v_store(w->step[h], v_div(all, levels));
        total[h] = v_none();
    }
    for (int t = 0; t < end; t += LANES) {
        vf scale[4], x[4];
        UNROLL_FOR (int i = 0; i < 4; i++)
            scale[i] = v_load_f16((const uint8_t *)(scales + 4 * t + 16 * i));
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            UNROLL_FOR (int i = 0; i < 4; i++)
                x[i] =
                    v_mul(v_mul(scale[i], v_fours(p + h * QUERY_SCORES + t + 4 * i)), inverse[h]);
            const vi bytes = v_quads_of(x);
            v_store_bytes((uint8_t *)w->bytes[h] + 4 * t, v_turned_lanes(bytes));
            if (bias)
                v_dot_weights_into(&total[h], v_set_int((int32_t)(bias * 0x01010101u)), bytes);
        }
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        v_store_ints(w->first[h], v_int_sub(v_none(), v_lanes_sum(total[h])));
}

/* <stage>_packs<q_rows>_<DTYPE>: reads four packs or two at a time, by fours_take(). */
#define FOURS_OR_TWO(stage, dim, q_rows, floats)                                                   \
    static void CAT(stage##_packs##q_rows##_, DTYPE)(const kvb_tile *tile, const kvb_group *group, \
                                                     floats *scores)                               \
    {                                                                                              \
        if (fours_take(group->dim))                                                                \
            CAT(stage##_fours##q_rows##_, DTYPE)(tile, group, scores);                             \
        else                                                                                       \
            CAT(stage##_dot##q_rows##_, DTYPE)(tile, group, scores);                               \
    }
#define FOURS_STAGE(stage, side, floats)                       \
    STAGE(stage##_fours, side, DTYPE, floats, NOT_IN_ORDER, 1) \
    FOURS_OR_TWO(stage, side##_dim, 1, floats)                 \
    FOURS_OR_TWO(stage, side##_dim, 2, floats)                 \
    FOURS_OR_TWO(stage, side##_dim, 4, floats)                 \
    FOURS_OR_TWO(stage, side##_dim, 8, floats)
