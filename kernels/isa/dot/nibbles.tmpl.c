#define DTYPE q4_0
#define BIAS 8
/* dot over q4_0 in blocks of 16 tokens, where a tier has V_NIBBLES: codes are below 16, so products
 * of them in pairs are summed in words of 16 bits, and these become whole numbers of 32 bits once
 * for a pack of K, and once for 32 tokens of V.
 *
 *   line of K   | t0: b0 b1 b2 b3 | t1 ... |     lower halves: four codes of a pack, upper ones:
 *   q[h]        |     q0 q1 q2 q3 | ...    |     those 16 elements further
 *   words       | b0 q0 + b1 q1 | b2 q2 + b3 q3 | ...           a token's two
 *
 *   line of V   | e0: b0 b1 b2 b3 | e1 ... |     four tokens of 16 elements, likewise
 *   weights[h]  |     w0 w1 w2 w3 | ...    |
 *   words       | b0 w0 + b1 w1 | b2 w2 + b3 w3 | ...           an element's two
 *
 * Codes have 8 added to what they mean: sums begin that much lower, or are corrected at their end.
 */

enum {
    PACK_LINES = 4,                      /* of a block: 16 bytes of 16 tokens */
    NIBBLES_PACK = PACK_LINES * LINE,    /* their bytes */
    NIBBLES_FRONT = LANES * 2,           /* bytes of a pack's scales in front of a block */
    NIBBLES_TOKENS = 2 * LANES,          /* of V whose products fit a word */
    BLOCK_VECS = LANES / VL,             /* vectors of a line */
    NIBBLES_MOST = QK_ACC / BLOCK_VECS,  /* most query rows that share a load of a line */
};
/* A word takes two products of each half of the lines of a pack, or of one half of a line for every
 * four tokens; and of a tile's weights, two of every vector of them. */
#define WORDS_FIT(products, most) \
    _Static_assert((products) * 15 * (most) <= INT16_MAX, "sums of nibbles fit a word")
WORDS_FIT(2 * 2 * PACK_LINES, DOT_QUERY);
WORDS_FIT(2 * NIBBLES_TOKENS / 4, DOT_WEIGHT);
_Static_assert(2 * TILE / VB * DOT_WEIGHT <= INT16_MAX, "sums of weights fit a word");

/* Codes of a line: its lower halves, or its upper ones. */
INLINE void nibbles_of(const uint8_t *line, const int upper, vi *x)
{
    UNROLL_FOR (int v = 0; v < BLOCK_VECS; v++) {
        vi both[2];
        v_nibbles(line + v * VB, both);
        x[v] = both[upper];
    }
}

/* ---- QK -------------------------------------------------------------------------------------- */

/* scores[h][t] += of one pack of the tokens of a block. `scales` and `lines`: the pack's. */
INLINE void qkt_nibbles_pack(const uint8_t *scales, const uint8_t *lines, prefetch *cursor,
                             const dot_pack *q, float *scores, const int q_rows, const int order)
{
    vi words[QK_ACC];
    UNROLL_FOR (int i = 0; i < BLOCK_VECS * q_rows; i++)
        words[i] = v_none();
    UNROLL_UP_TO(1)
    for (int c = 0; c < PACK_LINES; c++) {
        prefetch_with(cursor, lines + c * LINE, c, order);
        UNROLL_FOR (int upper = 0; upper < 2; upper++) {
            vi x[BLOCK_VECS];
            nibbles_of(lines + c * LINE, upper, x);
            UNROLL_FOR (int h = 0; h < q_rows; h++) {
                const vi w = dot_four(q[h].codes + upper * 16 + c * 4);
                UNROLL_FOR (int v = 0; v < BLOCK_VECS; v++)
                    v_dot_nibbles_into(&words[INDEX(h, q_rows) * BLOCK_VECS + v], x[v], w);
            }
        }
    }
    UNROLL_FOR (int v = 0; v < BLOCK_VECS; v++) {
        const vf scale = v_load_f16(scales + v * VL * 2);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            float *to = scores + h * QUERY_SCORES + v * VL;
            const vi whole = v_int_add(v_widen(words[INDEX(h, q_rows) * BLOCK_VECS + v]),
                                       v_set_int(q[h].begin));
            v_store(to, v_fma(v_floats(whole), v_mul(scale, v_set1(q[h].step)), v_load(to)));
        }
    }
}

/* The tokens of a block; `q`: that of its first query row. */
INLINE void qkt_nibbles_block(const uint8_t *block, int packs, prefetch *cursor, const dot_pack *q,
                              float *scores, const int q_rows, const int slots, const int order)
{
    const uint8_t *lines = block + packs * NIBBLES_FRONT;
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        UNROLL_FOR (int v = 0; v < BLOCK_VECS; v++)
            v_store(scores + h * QUERY_SCORES + v * VL, v_zero());
    UNROLL_UP_TO(1)
    for (int pack = 0; pack < packs; pack++, q += slots) {
        if (pack % (LINE / NIBBLES_FRONT) == 0)
            prefetch_with(cursor, block + pack * NIBBLES_FRONT, 0, order);
        qkt_nibbles_pack(block + pack * NIBBLES_FRONT, lines + pack * NIBBLES_PACK, cursor, q,
                         scores, q_rows, order);
    }
}

/* In passes of at most NIBBLES_MOST query rows; only the first prefetches. */
INLINE void qkt_dot_tile_q4_0(const kvb_tile *tile, const kvb_group *group, float *scores,
                              const int q_rows, const int order)
{
    const int pass = q_rows < NIBBLES_MOST ? q_rows : NIBBLES_MOST;
    const int packs = (group->k_dim + 31) / 32;
    const dot_pack *q = dot_packs_of(group);
    prefetch cursor = prefetch_block(&tile->k);
    for (int t = 0; t < tile->count; t += LANES) {
        const uint8_t *block = row_of(&tile->k, t, order);
        prefetch_of(&cursor, tile, &tile->k, t, order);
        if (order != ORDER_PLAIN)
            qkt_nibbles_block(block, packs, &cursor, q, scores + t, pass, q_rows, order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
            qkt_nibbles_block(block, packs, NULL, q + h, scores + h * QUERY_SCORES + t, pass,
                              q_rows, ORDER_PLAIN);
    }
}

/* ---- PV -------------------------------------------------------------------------------------- */

/* A tile's weights of some query rows times the scales of each pack, as bytes: [packs][q_rows]
 * [stride]; what one is worth, and what is added to its sums. */
typedef struct nibbles_weights {
    int64_t stride;
    float step[DIM_MAX / 32][NIBBLES_MOST], first[DIM_MAX / 32][NIBBLES_MOST];
    int8_t bytes[DIM_MAX / 32 * NIBBLES_MOST * TILE];
} nibbles_weights;

/* Weights times scales as bytes, up to a whole vector of them; what one is worth. */
INLINE float nibbles_round(const float *weighted, int end, float most, int8_t *bytes)
{
    const vf inverse = v_set1(dot_steps(DOT_WEIGHT, most));
    for (int t = 0; t < end; t += VB) {
        vf x[VB / VL];
        UNROLL_FOR (int i = 0; i < VB / VL; i++)
            x[i] = v_mul(v_load(weighted + t + i * VL), inverse);
        v_store_bytes((uint8_t *)bytes + t, v_rounded_bytes(x));
    }
    return most / DOT_WEIGHT;
}

/* Of one pack. A NaN counts as nothing. */
INLINE void nibbles_weigh_pack(const kvb_tile *tile, const float *p, int pack, nibbles_weights *w,
                               const int q_rows, const int order)
{
    const int end = (int)round_up(tile->count, LANES);
    _Alignas(LINE) float weighted[NIBBLES_MOST * QUERY_SCORES];
    vf largest[NIBBLES_MOST];
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        largest[h] = v_zero();
    for (int t = 0; t < end; t += LANES) {
        const uint8_t *scales = row_of(&tile->v, t, order) + pack * NIBBLES_FRONT;
        UNROLL_FOR (int v = 0; v < BLOCK_VECS; v++) {
            const vf scale = v_load_f16(scales + v * VL * 2);
            UNROLL_FOR (int h = 0; h < q_rows; h++) {
                const int at = h * QUERY_SCORES + t + v * VL;
                const vf x = v_number(v_mul(v_load(p + at), scale));
                v_store(weighted + at, x);
                largest[h] = v_max(largest[h], v_abs(x));
            }
        }
    }
    UNROLL_UP_TO(1)
    for (int h = 0; h < q_rows; h++) {
        for (int t = end; t < round_up(end, VB); t += VL)
            v_store(weighted + h * QUERY_SCORES + t, v_zero());
        w->step[pack][h] =
            nibbles_round(weighted + h * QUERY_SCORES, end, v_hmax(largest[h]),
                          w->bytes + (pack * q_rows + h) * w->stride);
    }
}

/* What sums of the tokens from `first` to `end` begin with: BIAS is added to what codes mean. */
INLINE void nibbles_firsts(nibbles_weights *w, int packs, int first, int end, const int q_rows)
{
    const vi each = v_set_int(0x01010101);
    for (int i = 0; i < packs * q_rows; i++) {
        const int8_t *bytes = w->bytes + i * w->stride;
        int8_t rest[VB] = {0};
        vi words = v_none();
        int t = first;
        for (; t + VB <= end; t += VB)
            v_dot_nibbles_into(&words, each, v_load_bytes(bytes + t));
        if (t < end) {
            memcpy(rest, bytes + t, LANES);
            v_dot_nibbles_into(&words, each, v_load_bytes(rest));
        }
        w->first[i / q_rows][i % q_rows] = -BIAS * v_hsum(v_floats(v_widen(words)));
    }
}

/* One half of a pack's elements, or both: from `first` to `end`, two blocks at a time. */
INLINE void pvq_nibbles_slice(const kvb_tile *tile, int first, int end, const kvb_group *group,
                              prefetch *cursor, const nibbles_weights *w, const float *rescale,
                              int pack, int half, int q_row, const int q_rows, const int halves,
                              const int order)
{
    const int sums = q_rows * halves * BLOCK_VECS;
    const int packs = (group->v_dim + 31) / 32;
    const int8_t *weights = w->bytes + pack * q_rows * w->stride;
    vi sum[PV_ACC];
    UNROLL_FOR (int i = 0; i < sums; i++)
        sum[i] = v_none();
    UNROLL_UP_TO(1)
    for (int from = first; from < end; from += NIBBLES_TOKENS) {
        const int to = (int)at_most(from + NIBBLES_TOKENS, end);
        vi words[PV_ACC];
        UNROLL_FOR (int i = 0; i < sums; i++)
            words[i] = v_none();
        UNROLL_UP_TO(1)
        for (int t = from; t < to; t += LANES) {
            const uint8_t *block = row_of(&tile->v, t, order);
            const uint8_t *lines = block + packs * NIBBLES_FRONT + pack * NIBBLES_PACK;
            if (pack % (LINE / NIBBLES_FRONT) == 0)
                prefetch_with(cursor, block + pack * NIBBLES_FRONT, 0, order);
            UNROLL_UP_TO(1)
            for (int quad = 0; quad < PACK_LINES; quad++) {
                prefetch_with(cursor, lines + quad * LINE, quad, order);
                vi x[2][BLOCK_VECS];
                UNROLL_FOR (int i = 0; i < halves; i++)
                    nibbles_of(lines + quad * LINE, halves == 2 ? i : half, x[i]);
                UNROLL_FOR (int h = 0; h < q_rows; h++) {
                    const vi own = dot_four(weights + h * w->stride + t + quad * 4);
                    UNROLL_FOR (int i = 0; i < halves * BLOCK_VECS; i++)
                        v_dot_nibbles_into(
                            &words[INDEX(h, q_rows) * halves * BLOCK_VECS + i],
                            x[i / BLOCK_VECS][i % BLOCK_VECS], own);
                }
            }
        }
        UNROLL_FOR (int i = 0; i < sums; i++)
            sum[i] = v_int_add(sum[i], v_widen(words[i]));
        KEEP_IN_MEMORY(sum);
    }
    UNROLL_FOR (int i = 0; i < sums; i++) {
        const int h = i / BLOCK_VECS / halves;
        const int at = pack * 32 + (half + i / BLOCK_VECS % halves) * 16 + i % BLOCK_VECS * VL;
        float *to = group->acc + (q_row + h) * group->v_pad + at;
        if (at < group->v_pad)
            v_store(to, v_fma(v_add(v_floats(sum[i]), v_set1(w->first[pack][h])),
                              v_set1(w->step[pack][h]),
                              v_mul(v_load(to), v_set1(rescale[q_row + h]))));
    }
}

/* Of so many query rows, from `q_row` on. */
INLINE void pvq_nibbles_some(const kvb_tile *tile, const kvb_group *group, const float *p,
                             int q_row, const int q_rows, const int order)
{
    const int halves = q_rows * BLOCK_VECS * 2 <= PV_ACC ? 2 : 1;
    const int end = (int)round_up(tile->count, LANES), packs = (group->v_dim + 31) / 32;
    const int run = order == ORDER_RUNS ? (int)tile->v.schedule->run_rows : TILE;
    const float *rescale = group->rescale;
    nibbles_weights w;
    prefetch cursor = prefetch_block(&tile->v);
    w.stride = round_up(end, VB);
    for (int pack = 0; pack < packs; pack++)
        nibbles_weigh_pack(tile, p + q_row * QUERY_SCORES, pack, &w, q_rows, order);
    for (int first = 0; first < end; first += run, rescale = ones) {
        const int last = (int)at_most(first + run, end);
        prefetch_of(&cursor, tile, &tile->v, first, order);
        nibbles_firsts(&w, packs, first, last, q_rows);
        UNROLL_UP_TO(1)
        for (int pack = 0; pack < packs; pack++) {
            pvq_nibbles_slice(tile, first, last, group, &cursor, &w, rescale, pack, 0, q_row,
                              q_rows, halves, order);
            if (halves == 1)
                pvq_nibbles_slice(tile, first, last, group, NULL, &w, rescale, pack, 1, q_row,
                                  q_rows, halves, ORDER_PLAIN);
        }
    }
}

/* Only the first query rows prefetch. */
INLINE void pvq_dot_tile_q4_0(const kvb_tile *tile, const kvb_group *group, const float *p,
                              const int q_rows, const int order)
{
    const int pass = q_rows < NIBBLES_MOST ? q_rows : NIBBLES_MOST;
    if (order != ORDER_PLAIN)
        pvq_nibbles_some(tile, group, p, 0, pass, order);
    for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
        pvq_nibbles_some(tile, group, p, h, pass, ORDER_PLAIN);
}

STAGE(qkt_dot, k, DTYPE, float, 0, 1)
STAGE(pvq_dot, v, DTYPE, const float, 0, 1)

#undef DTYPE
#undef BIAS
