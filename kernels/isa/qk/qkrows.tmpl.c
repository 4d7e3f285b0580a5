/* Scores of few heads, row after row in whole lines: the order in which hardware recognizes streams. That of qk.tmpl.c, a
 * line of many rows and then the next line of them, needs no sums in memory, and is what many heads want. */

/* Vectors of a row that are taken at a time: as registers have room for; of one head's floats, which are multiplied from
 * memory, so many that one of four lines can ask; of four heads, whose q is multiplied from memory, a line. */
INLINE int CAT(qk_vecs_, DTYPE)(const int heads, const int rows)
{
    const int most = heads > FEW_HEADS ? STEPS : heads == 1 && PLAIN ? 8 : QK_ACC / 2 / rows;
    return STEPS > most ? STEPS : most;
}

/* `vecs` vectors of each row from where `row` is, and of q. One of `asked` lines asks for another, or each where there are
 * fewer or two rows side by side. */
INLINE void CAT(qk_chunk_, DTYPE)(vf *acc, const uint8_t *row, int64_t stride, int64_t apart, const vf *q,
                                  const int heads, const int rows, const int chains, const int vecs, const int asked)
{
    const bool once = heads == 1 || heads > FEW_HEADS; /* a vector of the row; one of q, which is kept for no other row */
    vf x[ROW_HEADS * STEPS + QK_ACC];
    UNROLL for (int r = 0; r < rows; r++) {
        CAT(loads_, DTYPE)(row + r * stride, 0, vecs, x + TURN(r, rows) * vecs);
        UNROLL for (int s = 0; s < vecs; s += rows > 1 || vecs < asked * STEPS ? STEPS : asked * STEPS)
            kvb_fetch(row + r * stride + OFFSET(s * VL) + apart, true);
    }
    UNROLL for (int s = 0; s < vecs; s++)
        UNROLL for (int h = 0; h < heads; h++)
            UNROLL for (int r = 0; r < rows; r++) {
                vf *sum = &acc[(TURN(h, heads) * rows + TURN(r, rows)) * chains + s % chains];
                fma_of(sum, q[s * heads + TURN(h, heads)], x[TURN(r, rows) * vecs + s], once);
            }
}

/* `vecs` vectors of q for each head. */
INLINE void CAT(qk_query_, DTYPE)(const float *q, const int heads, const int vecs, vf *to)
{
    UNROLL for (int s = 0; s < vecs; s++)
        UNROLL for (int h = 0; h < heads; h++)
            to[s * heads + TURN(h, heads)] = v_load(q + q_index(s * VL, h, heads, LANES));
}

/* Products of `rows` rows with q, or with all of it that is `kept`: lanes to be summed, to `sum` and every LANES vectors. */
INLINE void CAT(qk_sums_, DTYPE)(const uint8_t *row, int64_t stride, int64_t apart, const float *q, const vf *kept, int dim,
                                 float *sum, const int heads, const int rows, const int asked)
{
    const int sums = heads * rows, chains = 4 / sums, vecs = CAT(qk_vecs_, DTYPE)(heads, rows);
    int left = dim;
    vf acc[QK_ACC], w[ROW_HEADS * (STEPS + QK_ACC)];
    UNROLL for (int i = 0; i < sums * chains; i++)
        acc[i] = v_zero();
    for (; left >= vecs * VL; left -= vecs * VL, row += OFFSET(vecs * VL), q += vecs * VL * heads) {
        if (!kept)
            CAT(qk_query_, DTYPE)(q, heads, vecs, w);
        CAT(qk_chunk_, DTYPE)(acc, row, stride, apart, kept ? kept : w, heads, rows, chains, vecs, asked);
    }
    for (; left >= SPAN; left -= SPAN, row += OFFSET(SPAN), q += SPAN * heads) {
        CAT(qk_query_, DTYPE)(q, heads, STEPS, w);
        CAT(qk_chunk_, DTYPE)(acc, row, stride, apart, w, heads, rows, chains, STEPS, asked);
    }
    for (int in = 0; in < left; in += VL)
        UNROLL for (int r = 0; r < rows; r++) {
            if (in == 0)
                kvb_fetch(row + r * stride + apart, true);
            vf x = LOAD(row + r * stride, 0, in);
            x = left - in < VL ? v_keep(x, left - in) : x;
            UNROLL for (int h = 0; h < heads; h++)
                v_fma_into(&acc[(TURN(h, heads) * rows + TURN(r, rows)) * chains], v_load(q + q_index(in, h, heads, LANES)), x);
        }
    UNROLL for (int i = 0; i < sums; i++) {
        vf all = acc[i * chains];
        UNROLL for (int c = 1; c < chains; c++)
            all = v_add(all, acc[i * chains + c]);
        v_store(sum + (i / rows * LANES + i % rows) * VL, all);
    }
}

/* Sums of LANES rows for each head, `apart` from head to head. */
INLINE void CAT(qk_merge_, DTYPE)(const float *sum, float *to, int apart, const int heads)
{
    for (int i = 0; i < heads * LANES; i += VL) {
        vf all[VL];
        UNROLL for (int l = 0; l < VL; l++)
            all[l] = v_load(sum + (i + l) * VL);
        v_store(to + i / LANES * apart + i % LANES, UNFOLD(v_sums(all)));
    }
}

/* LANES rows of one KV head. Two heads take two at a time, so that a vector of q meets both, but long ones by themselves. Of
 * four, a row's loop is not written out: what loads it is one instruction that goes from line to line, which hardware
 * follows; as eight of them, each of which comes back a row later, took a fifth longer. */
INLINE void CAT(qk_lanes_, DTYPE)(const uint8_t *k, int64_t stride, int64_t apart, const float *q, int dim, float *scores,
                                  const int heads)
{
    const int rows = ELEMENT < 4 ? heads : 1, vecs = CAT(qk_vecs_, DTYPE)(heads, rows);
    const bool keep = __builtin_constant_p(dim) && dim == vecs * VL; /* in registers */
    float sum[ROW_HEADS * LANES * VL];
    vf kept[ROW_HEADS * (STEPS + QK_ACC)];
    if (keep)
        CAT(qk_query_, DTYPE)(q, heads, vecs, kept);
    for (int t = 0; t < LANES; t += rows)
        CAT(qk_sums_, DTYPE)(k + t * stride, stride, apart, q, keep ? kept : NULL, dim, sum + t * VL, heads, rows,
                              heads > FEW_HEADS ? 1 : LINES_PER_REQUEST);
    KEEP_IN_MEMORY(sum);
    CAT(qk_merge_, DTYPE)(sum, scores, QUERY_SCORES, heads);
}

/* LANES rows from `row` on, each of the next KV head after the one before it. */
INLINE void CAT(qk_turns_, DTYPE)(const kvb_tile *tile, const kvb_group *group, int64_t row, int dim, float *scores,
                                  const int heads)
{
    const uint8_t *k = row_of(tile, tile->k, row, ORDER_ROWS);
    int64_t head = row % tile->schedule->kv_heads, t = row / tile->schedule->kv_heads;
    float sum[ROW_HEADS * LANES * VL], found[ROW_HEADS * LANES];
    for (int64_t r = 0, h = head; r < LANES; r++, h = h + 1 < tile->schedule->kv_heads ? h + 1 : 0)
        CAT(qk_sums_, DTYPE)(k + r * tile->stride, 0, tile->schedule->distance, Q_OF(group + h), NULL, dim, sum + r * VL, heads, 1,
                              PLAIN && heads <= FEW_HEADS ? LINES_PER_REQUEST : 1);
    KEEP_IN_MEMORY(sum);
    CAT(qk_merge_, DTYPE)(sum, found, LANES, heads);
    KEEP_IN_MEMORY(found);
    for (int r = 0; r < LANES; r++) {
        UNROLL for (int h = 0; h < heads; h++)
            scores[head * HEAD_SCORES + h * QUERY_SCORES + t] = found[h * LANES + r];
        if (++head == tile->schedule->kv_heads) {
            head = 0;
            t++;
        }
    }
}

INLINE void CAT(qk_turns_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads)
{
    for (int64_t row = 0; row < tile->count * tile->schedule->kv_heads; row += LANES)
        if (group->dim == USUAL && heads <= FEW_HEADS)
            CAT(qk_turns_, DTYPE)(tile, group, row, USUAL, scores, heads);
        else
            CAT(qk_turns_, DTYPE)(tile, group, row, group->dim, scores, heads);
}
APART_OF(qk_turns, 1, float)
APART_OF(qk_turns, 2, float)
#if ROW_HEADS > 2
APART_OF(qk_turns, 4, float)
#endif

INLINE void CAT(qk_rows_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads)
{
    if (tile->schedule->kv_heads > 1) {
#if ROW_HEADS > 2
        if (heads > FEW_HEADS) {
            CAT(qk_turns4_, DTYPE)(tile, group, scores);
            return;
        }
#endif
        (heads == 1 ? CAT(qk_turns1_, DTYPE) : CAT(qk_turns2_, DTYPE))(tile, group, scores);
        return;
    }
    for (int t = 0; t < tile->count; t += LANES) {
        const uint8_t *k = row_of(tile, tile->k, t, ORDER_ROWS);
        if (group->dim == USUAL && heads <= FEW_HEADS)
            CAT(qk_lanes_, DTYPE)(k, tile->stride, tile->schedule->distance, Q_OF(group), USUAL, scores + t, heads);
        else
            CAT(qk_lanes_, DTYPE)(k, tile->stride, tile->schedule->distance, Q_OF(group), group->dim, scores + t, heads);
    }
}
