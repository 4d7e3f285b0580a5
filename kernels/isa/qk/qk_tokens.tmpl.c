/* QK of several tokens at a time: any dtype, tier, group class and order. Each pair of a query row
 * (at most QK_MOST) and a token (QK_ACC / q_rows) has a sum in a register. Rows are read side by
 * side, a vector of each:
 *
 *   q[h]      | w0 | w1 | ...
 *   row t     | x0 | x1 | ...    acc[h][t] += w0 * x0, and so on: VL lanes each
 *   row t+1   | x0 | x1 | ...
 *
 * v_sums adds the lanes up, VL sums at a time. For packed rows, one query row adds up codes, and
 * multiplies the sum of each pack by its scale. More query rows share converted values. */

#define CODES_FIRST(q_rows) (PACK > 1 && (q_rows) == 1)
/* One query row uses a row's vector as soon as it is loaded, because registers are few. */
#if defined(QK_AT_ONCE) || PACK > 1
#define ONE_AT_ONCE 1
#else
#define ONE_AT_ONCE 0
#endif

/* Do one vector of each row, at element `in`: `keep` lanes of it (VL: all). */
INLINE void CAT(qk_step_, DTYPE)(vf *acc, kvb_places k, int in, const float *q, int keep,
                                 const int q_rows)
{
    const int tokens = QK_ACC / q_rows;
    if (ONE_AT_ONCE && q_rows == 1) {
        vf w = v_load(q);
        UNROLL_FOR (int t = 0; t < tokens; t++) {
            vf row = CODES_FIRST(q_rows) ? CODES(kvb_row_at(k, t), in) : LOAD(kvb_row_at(k, t), in);
            v_fma_into(&acc[t], w, keep < VL ? v_keep(row, keep) : row);
        }
        return;
    }
    vf x[QK_ACC];
    UNROLL_FOR (int t = 0; t < tokens; t++) {
        x[t] = LOAD(kvb_row_at(k, t), in);
        if (keep < VL)
            x[t] = v_keep(x[t], keep);
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        vf w = v_load(q + h * LANES);
        UNROLL_FOR (int t = 0; t < tokens; t++)
            v_fma_into(&acc[INDEX(h, q_rows) * tokens + t], w, x[t]);
    }
}

#if PAIRED
/* Do two whole vectors of each row, at element `at`. `q` and `after`: the two vectors of the first
 * query row. With few query rows, a row is used as soon as it is loaded, because registers are few;
 * with many, their q is loaded once for all rows. */
INLINE void CAT(qk_pair_, DTYPE)(vf *acc, kvb_places k, int at, const float *q, const float *after,
                                 const int q_rows)
{
    const int tokens = QK_ACC / q_rows;
    vf x[2 * QK_ACC];
    UNROLL_FOR (int t = 0; t < tokens; t++) {
        CAT(v_pair_, DTYPE)(kvb_row_at(k, t) + OFFSET(at), x + 2 * t);
        UNROLL_FOR (int h = 0; q_rows <= 2 && h < q_rows; h++) {
            v_fma_into(&acc[h * tokens + t], v_load(q + h * LANES), x[2 * t]);
            v_fma_into(&acc[h * tokens + t], v_load(after + h * LANES), x[2 * t + 1]);
        }
    }
    UNROLL_FOR (int h = 0; q_rows > 2 && h < q_rows; h++) {
        vf w = v_load(q + h * LANES), v = v_load(after + h * LANES);
        UNROLL_FOR (int t = 0; t < tokens; t++)
            v_fma_into(&acc[h * tokens + t], w, x[2 * t]);
        UNROLL_FOR (int t = 0; t < tokens; t++)
            v_fma_into(&acc[h * tokens + t], v, x[2 * t + 1]);
    }
}
#endif

/* Add the sums over a pack's codes, times the scales (the f16 at the start of a pack), and reset
 * these sums. */
INLINE void CAT(qk_pack_, DTYPE)(vf *acc, vf *part, kvb_places k, int offset, const int q_rows)
{
    const int tokens = QK_ACC / q_rows;
    UNROLL_FOR (int t = 0; t < tokens; t++) {
        vf scale = v_half(kvb_row_at(k, t) + offset);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            v_fma_into(&acc[h * tokens + t], scale, part[h * tokens + t]);
            part[h * tokens + t] = v_zero();
        }
    }
}

/* Do QK_ACC / q_rows tokens from k[0] on, for `q_rows` of the `slots` query rows. Their q are
 * interleaved, so one pointer with constant offsets reaches all. Every line of every row prefetches
 * a line, spread over the steps of the line. */
INLINE void CAT(qk_tokens_, DTYPE)(kvb_places k, prefetch *cursor, const float *q, int dim,
                                   float *scores, const int q_rows, const int slots,
                                   const int order)
{
    const int tokens = QK_ACC / q_rows;
    vf acc[QK_ACC], part[QK_ACC], *const into = CODES_FIRST(q_rows) ? part : acc;
    UNROLL_FOR (int i = 0; i < QK_ACC; i++)
        acc[i] = part[i] = v_zero();
    int at = 0;
    for (; at + SPAN <= dim; at += SPAN, k.from += OFFSET(SPAN), q += SPAN * slots)
        UNROLL_FOR (int s = 0; s < STEPS; s++) {
            UNROLL_FOR (int t = 0; t < tokens; t++)
                if (t % STEPS == s)
                    prefetch_line(cursor, order);
            const float *w = q + q_index(s * VL, 0, slots, LANES);
#if PAIRED
            if (s % 2 == 0)
                CAT(qk_pair_, DTYPE)(acc, k, s * VL, w, q + q_index((s + 1) * VL, 0, slots, LANES),
                                     q_rows);
#else
            CAT(qk_step_, DTYPE)(into, k, s * VL, w, VL, q_rows);
#endif
            if (CODES_FIRST(q_rows) && (s + 1) * VL % PACK == 0)
                CAT(qk_pack_, DTYPE)(acc, part, k, OFFSET(s * VL), q_rows);
        }
    const int left = dim - at;
    for (int t = 0; left && t < tokens; t++)
        prefetch_line(cursor, order);
    for (int in = 0; in < left; in += VL) {
        CAT(qk_step_, DTYPE)(into, k, in, q + q_index(in, 0, slots, LANES), left - in, q_rows);
        if (CODES_FIRST(q_rows) && ((in + VL) % PACK == 0 || in + VL >= left))
            CAT(qk_pack_, DTYPE)(acc, part, k, OFFSET(in), q_rows);
    }
    float sums[QK_ACC];
    UNROLL_FOR (int i = 0; i < QK_ACC; i += VL)
        v_store(sums + i, CAT(unfold_, DTYPE)(v_sums(acc + i)));
    KEEP_IN_MEMORY(sums);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        memcpy(scores + h * QUERY_SCORES, sums + h * tokens, (size_t)tokens * sizeof *sums);
}

/* Do `q_rows` query rows, in passes of at most QK_MOST. Only the first pass prefetches. */
INLINE void CAT(qk_passes_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                   const int q_rows, const int order)
{
    const int pass = q_rows < QK_MOST ? q_rows : QK_MOST, tokens = QK_ACC / pass;
    const float *q = CAT(query_, DTYPE)(group);
    prefetch cursor = PREFETCH(&tile->k, group->k_dim);
    for (int t = 0; t < tile->count; t += tokens) {
        const kvb_places k = kvb_rows_from(tile->k.rows, t);
        prefetch_of(&cursor, tile, &tile->k, t, order);
        if (order != ORDER_PLAIN)
            CAT(qk_tokens_, DTYPE)(k, &cursor, q, group->k_dim, scores + t, pass, q_rows, order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass)
            CAT(qk_tokens_, DTYPE)(k, NULL, q + h * LANES, group->k_dim,
                                   scores + h * QUERY_SCORES + t, pass, q_rows, ORDER_PLAIN);
    }
}

#undef CODES_FIRST
#undef ONE_AT_ONCE
