/* How QK and PV take vectors of DTYPE. Those of a format with a FOLD are that much smaller than its values: sums are
 * multiplied at their end, exactly, for it is a power of two. Where a tier has V_PAIR_<dtype>, it converts two
 * vectors of a row at once; where it has V_DEAL_<dtype>, one of them gets the elements at even places and the other those
 * between. */
#undef LOADF
#undef UNFOLD
#undef INTO_FOLD
#undef PAIR
#undef LOAD2
#undef Q_OF
#undef DEAL
#undef UNDEAL

#ifdef FOLD
#define LOADF CAT(v_small_, DTYPE)
#define UNFOLD(x) v_mul(x, v_set1(FOLD))
#define INTO_FOLD(x) v_mul(x, v_set1(1.0f / FOLD))
#else
#define LOADF LOADV
#define UNFOLD(x) (x)
#define INTO_FOLD(x) (x)
#endif

#if CAT(V_PAIR_, DTYPE) /* 0 where the tier does not say */
#define PAIR 2
#define LOAD2 CAT(v_pair_, DTYPE)

/* Two whole vectors of D of each row, at element `at`; `q` and `after` are those of the first head for each. Few heads
 * take a row when it is loaded, for lack of registers; many take their q once for all rows. */
INLINE void CAT(qk_pair_, DTYPE)(vf *acc, kvb_places k, int at, const float *q, const float *after,
                                 const int heads)
{
    const int tokens = QK_ACC / heads;
    vf x[2 * QK_ACC];
    UNROLL for (int t = 0; t < tokens; t++) {
        LOAD2(kvb_row_at(k, t) + OFFSET(at), x + 2 * t);
        UNROLL for (int h = 0; heads <= 2 && h < heads; h++) {
            v_fma_into(&acc[h * tokens + t], v_load(q + h * LANES), x[2 * t]);
            v_fma_into(&acc[h * tokens + t], v_load(after + h * LANES), x[2 * t + 1]);
        }
    }
    UNROLL for (int h = 0; heads > 2 && h < heads; h++) {
        vf w = v_load(q + h * LANES), v = v_load(after + h * LANES);
        UNROLL for (int t = 0; t < tokens; t++)
            v_fma_into(&acc[h * tokens + t], w, x[2 * t]);
        UNROLL for (int t = 0; t < tokens; t++)
            v_fma_into(&acc[h * tokens + t], v, x[2 * t + 1]);
    }
}
#else
#define PAIR 1
#endif

#if CAT(V_DEAL_, DTYPE) /* so q is dealt once for a unit, and sums of V are while they are in registers */
#define Q_OF(group) ((group)->dealt)
#define DEAL v_deal
#define UNDEAL v_undeal

/* Whole spans: behind them, QK takes vectors one by one. */
static void CAT(deal_, DTYPE)(const kvb_group *group)
{
    const int slots = group->slots, whole = group->dim / SPAN * SPAN;
    float *to = group->dealt;
    memcpy(to, group->q, (size_t)(slots * group->dim_pad) * sizeof *to);
    for (int at = 0; at < whole; at += 2 * VL) {
#ifdef V_FOURS
        if (slots == HEADS) {
            for (int h = 0; h < HEADS; h += VL / SHARE)
                for (int i = 0; i < VL; i += SHARE) {
                    vf pair[2] = {v_load(group->q + q_index(at + 2 * i, h, HEADS, SHARE)),
                                  v_load(group->q + q_index(at + 2 * i + SHARE, h, HEADS, SHARE))};
                    v_deal_fours(pair);
                    v_store(to + q_index(at + i, h, HEADS, SHARE), pair[0]);
                    v_store(to + q_index(at + VL + i, h, HEADS, SHARE), pair[1]);
                }
            continue;
        }
#endif
        for (int h = 0; h < slots; h++) {
            const int64_t low = q_index(at, h, slots, LANES), high = q_index(at + VL, h, slots, LANES);
            vf pair[2] = {v_load(group->q + low), v_load(group->q + high)};
            v_deal(pair);
            v_store(to + low, pair[0]);
            v_store(to + high, pair[1]);
        }
    }
}
#else
#define Q_OF(group) ((group)->q)
#endif

/* `vecs` vectors of a row, from element `in` of a block on. */
INLINE void CAT(loads_, DTYPE)(const uint8_t *row, const int in, const int vecs, vf *x)
{
    int i = 0;
#if PAIR == 2
    UNROLL for (; i + 1 < vecs; i += 2)
        LOAD2(row + OFFSET(in + i * VL), x + i);
#endif
    UNROLL for (; i < vecs; i++)
        x[i] = LOAD(row, 0, in + i * VL);
}
