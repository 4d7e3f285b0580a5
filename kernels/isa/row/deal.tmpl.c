/* Dealing: putting elements in the order in which pairs of vectors are loaded (bf16, on tiers with
 * V_DEAL_bf16). The first vector gets the even elements, the second the odd ones:
 *
 *   row            | e0 e1 e2 e3 ... |
 *   pair loaded    | e0 e2 ... | e1 e3 ... |
 *   deal:          | a0 a1 ... | b0 b1 ... |  ->  | a0 a2 ... b0 b2 ... | a1 a3 ... |
 *   undeal:        the reverse
 *
 * So q is dealt once for a unit, and sums of V while they are in registers. Other dtypes are not
 * dealt. */

#if DEALT
enum { CAT(is_dealt_, DTYPE) = true };
#else
enum { CAT(is_dealt_, DTYPE) = false };
#endif

/* Deal the whole pairs of `vecs` vectors, or undeal them (`back`). */
INLINE void CAT(deal_, DTYPE)(vf *x, const int vecs, const bool back)
{
#if DEALT
    UNROLL_FOR (int i = 0; i + 1 < vecs; i += 2)
        if (back)
            v_undeal(x + i);
        else
            v_deal(x + i);
#else
    (void)x, (void)vecs, (void)back;
#endif
}

/* Return the q that rows are multiplied by. */
INLINE const float *CAT(query_, DTYPE)(const kvb_group *group)
{
    return CAT(is_dealt_, DTYPE) ? group->dealt : group->q;
}

#if DEALT
/* Deal q in whole spans. After the last whole span, QK takes vectors one by one. */
static void CAT(deal_query_, DTYPE)(const kvb_group *group)
{
    const int slots = group->slots, whole = group->k_dim / SPAN * SPAN;
    float *to = group->dealt;
    memcpy(to, group->q, (size_t)(slots * group->k_pad) * sizeof *to);
    for (int at = 0; at < whole; at += 2 * VL) {
#ifdef V_FOURS
        if (slots == Q_ROWS) {
            for (int h = 0; h < Q_ROWS; h += VL / SHARE)
                for (int i = 0; i < VL; i += SHARE) {
                    vf pair[2] = {v_load(group->q + q_index(at + 2 * i, h, Q_ROWS, SHARE)),
                                  v_load(group->q + q_index(at + 2 * i + SHARE, h, Q_ROWS, SHARE))};
                    v_deal_fours(pair);
                    v_store(to + q_index(at + i, h, Q_ROWS, SHARE), pair[0]);
                    v_store(to + q_index(at + VL + i, h, Q_ROWS, SHARE), pair[1]);
                }
            continue;
        }
#endif
        for (int h = 0; h < slots; h++) {
            const int64_t low = q_index(at, h, slots, LANES),
                          high = q_index(at + VL, h, slots, LANES);
            vf pair[2] = {v_load(group->q + low), v_load(group->q + high)};
            v_deal(pair);
            v_store(to + low, pair[0]);
            v_store(to + high, pair[1]);
        }
    }
}
#endif
