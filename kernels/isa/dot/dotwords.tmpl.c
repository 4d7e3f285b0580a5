/* dot16 by products of 16-bit words: codes are widened as they are loaded, one instruction for 2 * VL of them. */

enum { VW = 2 * VL }; /* words of a vector */

/* codes: [dim / VW][slots][VW] */
static void take_dot16(const kvb_group *group)
{
    int16_t *codes = (int16_t *)(void *)group->taken->codes;
    for (int h = 0; h < group->slots; h++) {
        float inverse = dot_query_steps(group, h, READ_DOT16, &group->taken->step[h]);
        for (int64_t d = 0; d < round_up(group->dim, VW); d += VL)
            v_store_words16(codes + (d / VW * group->slots + h) * VW + d % VW, dot_query_at(group, h, d, inverse));
    }
}

INLINE void qk_step_dot16(vi *acc, kvb_places k, int at, const int16_t *q, const int heads)
{
    const int tokens = QK_ACC / heads;
    vi x[QK_ACC];
    UNROLL for (int t = 0; t < tokens; t++)
        x[t] = v_words(kvb_row_at(k, t) + at);
    UNROLL for (int h = 0; h < heads; h++) {
        vi w = v_load_words(q + h * VW);
        UNROLL for (int t = 0; t < tokens; t++)
            v_dot_words_into(&acc[INDEX(h, heads) * tokens + t], x[t], w);
    }
}

INLINE void qk_tokens_dot16(kvb_places k, ahead *cursor, const int16_t *q, int dim, const float *each,
                            float *scores, const int heads, const int slots, const int order)
{
    enum { PARTS = LINE / VW };
    const int tokens = QK_ACC / heads;
    vi acc[QK_ACC];
    UNROLL for (int i = 0; i < QK_ACC; i++)
        acc[i] = v_none();
    int at = 0;
    for (; at + LINE <= dim; at += LINE, q += PARTS * VW * slots)
        UNROLL for (int s = 0; s < PARTS; s++) {
            UNROLL for (int t = 0; t < tokens; t++)
                if (t % PARTS == s)
                    ahead_line(cursor, order);
            qk_step_dot16(acc, k, at + s * VW, q + s * VW * slots, heads);
        }
    if (at < dim)
        UNROLL for (int t = 0; t < tokens; t++)
            ahead_line(cursor, order);
    for (; at < dim; at += VW, q += VW * slots)
        qk_step_dot16(acc, k, at, q, heads);
    vf sums[QK_ACC / VL];
    UNROLL for (int i = 0; i < QK_ACC; i += VL)
        sums[i / VL] = dot_sums(acc + i, 0);
    dot_scores(sums, each, scores, heads, tokens);
}

INLINE void qk_tile_dot16(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads, const int order)
{
    const int pass = heads < QK_HEADS ? heads : QK_HEADS, tokens = QK_ACC / pass;
    const int16_t *q = (const int16_t *)(const void *)group->taken->codes;
    float each[QK_ACC * HEADS];
    dot_steps_of(group->taken->step, each, heads, tokens);
    ahead cursor = ahead_from(tile, tile->next.k, group->dim);
    for (int t = 0; t < tile->count; t += tokens) {
        ahead_of(&cursor, tile, tile->k, tile->next.k, t, order);
        UNROLL for (int h = 0; h < heads; h += pass)
            qk_tokens_dot16(kvb_rows_from(tile->k, t), &cursor, q + h * VW, group->dim, each + h * tokens,
                            scores + h * QUERY_SCORES + t, pass, heads, h == 0 ? order : ORDER_PLAIN);
    }
}

enum { WORD_SUMS = QK_ACC * VW / (4 * LANES) }; /* most heads of a block's scores */

enum { WORD_VECTORS = 4 * LANES / VW }; /* of a cell of a block's tokens */

/* Four codes of each token of a block, VL / 2 tokens to a vector: two lanes of each, which are added at the end. */
INLINE void qkt_cell_words(vi *acc, const uint8_t *k, const int16_t *q, int at, const int heads, const int slots)
{
    const int16_t *four = q + at / VW * VW * slots + at % VW;
    vi x[WORD_VECTORS];
    UNROLL for (int v = 0; v < WORD_VECTORS; v++)
        x[v] = v_words(k + at * LANES + v * VW);
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int v = 0; v < WORD_VECTORS; v++)
            v_dot_words_into(&acc[INDEX(h, heads) * WORD_VECTORS + v], x[v], v_set_eight(four + h * VW));
}

/* Few heads have several sums to a score, which hide the latency of one. */
INLINE void qkt_block_dot16(const uint8_t *k, ahead *cursor, const int16_t *q, int dim, const float *step,
                            float *scores, const int heads, const int slots, const int order)
{
    const int sums = heads * WORD_VECTORS, chains = QK_ACC / sums < 4 ? QK_ACC / sums : 4;
    vi acc[QK_ACC];
    UNROLL for (int i = 0; i < chains * sums; i++)
        acc[i] = v_none();
    int at = 0;
    for (; at + 4 * chains <= dim; at += 4 * chains)
        UNROLL for (int c = 0; c < chains; c++) {
            ahead_line(cursor, order);
            qkt_cell_words(acc + c % chains * sums, k, q, at + 4 * c, heads, slots);
        }
    for (; at < dim; at += 4) {
        ahead_line(cursor, order);
        qkt_cell_words(acc, k, q, at, heads, slots);
    }
    UNROLL for (int h = 0; h < heads; h++) {
        int32_t halves[2 * LANES];
        UNROLL for (int v = 0; v < WORD_VECTORS; v++) {
            vi sum = dot_chained(&acc[INDEX(h, heads) * WORD_VECTORS + v], chains, sums);
            memcpy(halves + v * VL, &sum, sizeof sum);
        }
        for (int t = 0; t < LANES; t++)
            scores[h * QUERY_SCORES + t] = (float)(halves[2 * t] + halves[2 * t + 1]) * step[h];
    }
}

INLINE void qkt_tile_dot16(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads, const int order)
{
    const int pass = heads < WORD_SUMS ? heads : WORD_SUMS;
    const int16_t *q = (const int16_t *)(const void *)group->taken->codes;
    ahead cursor = ahead_from(tile, tile->next.k, group->dim);
    for (int t = 0; t < tile->count; t += LANES) {
        ahead_of(&cursor, tile, tile->k, tile->next.k, t, order);
        UNROLL for (int h = 0; h < heads; h += pass)
            qkt_block_dot16(kvb_row_at(tile->k, t), &cursor, q + h * VW, group->dim, group->taken->step + h,
                            scores + h * QUERY_SCORES + t, pass, heads, h == 0 ? order : ORDER_PLAIN);
    }
}

/* Two rows at a time, an element of one beside that of the other: their products with two weights are added at once. */
INLINE void pv_slice_dot16(const kvb_tile *tile, int first, int end, ahead *cursor, const int16_t *weights, const float *step,
                           const float *rescale, float *acc, int64_t acc_stride, int at, const int heads, const int vecs,
                           const int order)
{
    vi sum[PV_ACC];
    UNROLL for (int i = 0; i < heads * vecs; i++)
        sum[i] = v_none();
    const bool starts = vecs * VL >= LINE || at % LINE == 0;
    for (int t = first; t < end; t += 2) {
        if (starts)
            UNROLL for (int l = 0; l < 2 * ((vecs * VL + LINE - 1) / LINE); l++)
                ahead_line(cursor, order);
        vi x[PV_ACC];
        UNROLL for (int i = 0; i < vecs; i++)
            x[i] = v_word_pairs(kvb_row_at(tile->v, t) + at + i * VL, kvb_row_at(tile->v, t + 1) + at + i * VL);
        UNROLL for (int h = 0; h < heads; h++) {
            vi w = dot_four(weights + h * TILE + t);
            UNROLL for (int i = 0; i < vecs; i++)
                v_dot_words_into(&sum[INDEX(h, heads) * vecs + INDEX(i, vecs)], x[i], w);
        }
    }
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < vecs; i++) {
            float *to = acc + h * acc_stride + at + i * VL;
            vf old = v_mul(v_load(to), v_set1(rescale[h]));
            v_store(to, v_fma(v_floats(sum[INDEX(h, heads) * vecs + INDEX(i, vecs)]), v_set1(step[h]), old));
        }
}

INLINE void pv_heads_dot16(const kvb_tile *tile, const kvb_group *group, const int16_t *weights, const float *step,
                           int head, const int heads, const int order)
{
    ahead cursor = ahead_from(tile, tile->next.v, group->dim);
    float *acc = group->acc + head * group->dim_pad;
    const float *rescale = group->rescale + head;
    const int dim = (group->dim + VL - 1) / VL * VL, run = order == ORDER_RUNS ? (int)tile->schedule->run_rows : TILE;
    weights += head * TILE;
    step += head;
    for (int first = 0, end; first < tile->count; first = end) {
        int at = 0;
        ahead_of(&cursor, tile, tile->v, tile->next.v, first, order);
        end = (int)at_most(first + run, tile->count);
#define SLICES(vecs)                                                                                            \
    for (; DOT_WORDS / heads >= vecs && at + vecs * VL <= dim; at += vecs * VL)                                 \
        pv_slice_dot16(tile, first, end, &cursor, weights, step, rescale, acc, group->dim_pad, at, heads,       \
                       DOT_WORDS / heads >= vecs ? vecs : 1, order);
        SLICES(4)
        SLICES(2)
        SLICES(1)
#undef SLICES
        rescale = ones;
    }
}

INLINE void pv_tile_dot16(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads, const int order)
{
    int16_t weights[HEADS * TILE];
    float step[HEADS];
    const int pass = heads < PV_HEADS ? heads : PV_HEADS, end = (int)round_up(tile->count, LANES);
    for (int h = 0; h < heads; h++) {
        float inverse = dot_weight_steps(p + h * QUERY_SCORES, end, READ_DOT16, &step[h]);
        for (int t = 0; t < end; t += VL)
            v_store_words16(weights + h * TILE + t, v_mul(v_load(p + h * QUERY_SCORES + t), v_set1(inverse)));
    }
    UNROLL for (int h = 0; h < heads; h += pass)
        pv_heads_dot16(tile, group, weights, step, h, pass, h == 0 ? order : ORDER_PLAIN);
}

STAGE(qk, dot16, float, 0, 1)
STAGE(qkt, dot16, float, 0, 1)
STAGE(pv, dot16, const float, 0, 1)
#define ROWS_DOT16 DOT_ROWS(dot16, WORD_SUMS, PV_HEADS, NULL)
