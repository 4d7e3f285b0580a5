/* QK of packs.tmpl.c, and PV, for DTYPE. Its packs have ELEMENT bytes; PACKED_CODES loads its
 * codes, with BIAS added. */
#define PACK 32
/* codes are unsigned if the tier multiplies only unsigned ones */
#define QK_BIAS (BIAS ? BIAS : DOT_BIAS)

static void CAT(prepare_query_dot_, DTYPE)(const kvb_group *group)
{
    prepare_packs(group, QK_BIAS);
}

/* Do the pack at k.from of each row. If a vector holds two packs, also the pack `next` bytes after
 * it; 0 after the last pack. */
INLINE void CAT(qk_packs_, DTYPE)(vf *acc, kvb_places k, int next, const dot_part *q,
                                  const int q_rows)
{
    const int tokens = QK_ACC / q_rows;
    UNROLL_FOR (int t = 0; t < tokens; t++) {
        const uint8_t *pack = kvb_row_at(k, t);
        vi x[DOT_VECS];
        PACKED_CODES(pack, pack + next, x);
        const vf scale = v_pack_scales(pack, pack + next);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            vi sum = QK_BIAS != 0 ? v_load_ints(q[h].first) : v_none();
            UNROLL_FOR (int i = 0; i < DOT_VECS; i++)
                v_dot_codes_into(&sum, BIAS ? x[i] : v_biased(x[i]),
                                 v_load_bytes(q[h].codes + i * VB), QK_BIAS);
            v_fma_into(&acc[INDEX(h, q_rows) * tokens + t], v_mul(scale, v_load(q[h].step)),
                       v_floats(sum));
        }
    }
}

/* Do QK_ACC / q_rows tokens from k[0] on. Every SPAN of every row prefetches. */
INLINE void CAT(qk_dot_tokens_, DTYPE)(kvb_places k, prefetch *cursor, const dot_part *q, int dim,
                                       float *scores, const int q_rows, const int slots,
                                       const int order)
{
    const int tokens = QK_ACC / q_rows;
    vf acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < QK_ACC; i++)
        acc[i] = v_zero();
    for (int left = dim; left > 0; left -= SPAN)
        UNROLL_FOR (int s = 0; s < SPAN; s += 32 * DOT_PACKS) {
            UNROLL_FOR (int t = 0; t < tokens; t++)
                if (t % (SPAN / 32 / DOT_PACKS) == s / 32)
                    prefetch_line(cursor, order);
            if (left > s)
                CAT(qk_packs_, DTYPE)(acc, k, left > s + 32 ? ELEMENT : 0, q, q_rows);
            k.from += ELEMENT * DOT_PACKS;
            q += slots;
        }
    float sums[QK_ACC];
    UNROLL_FOR (int i = 0; i < QK_ACC; i += VL)
        v_store(sums + i, v_sums(acc + i));
    KEEP_IN_MEMORY(sums);
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        memcpy(scores + h * QUERY_SCORES, sums + h * tokens, (size_t)tokens * sizeof *sums);
}

/* Do a tile, in passes of at most QK_MOST query rows. Only the first pass prefetches. */
INLINE void CAT(qk_dot_tile_, DTYPE)(const kvb_tile *tile, const kvb_group *group, float *scores,
                                     const int q_rows, const int order)
{
    const int pass = q_rows < QK_MOST ? q_rows : QK_MOST, tokens = QK_ACC / pass;
    const dot_part *q = dot_parts_of(group);
    prefetch cursor = PREFETCH(&tile->k, group->k_dim);
    for (int t = 0; t < tile->count; t += tokens) {
        const kvb_places k = kvb_rows_from(tile->k.rows, t);
        if (order != ORDER_PLAIN)
            CAT(qk_dot_tokens_, DTYPE)(k, &cursor, q, group->k_dim, scores + t, pass, q_rows,
                                       order);
        for (int h = order == ORDER_PLAIN ? 0 : pass; h < q_rows; h += pass) {
            float *to = scores + h * QUERY_SCORES + t;
            CAT(qk_dot_tokens_, DTYPE)(k, NULL, q + h, group->k_dim, to, pass, q_rows, ORDER_PLAIN);
        }
    }
}

STAGE(qk_dot, k, DTYPE, float, NOT_IN_ORDER, 1)
#include "isa/blocks/packs_qk_t.tmpl.c"

#include "isa/dot/pv.tmpl.c"
STAGE(pv_dot, v, DTYPE, const float, NOT_IN_ORDER, 1)
#include "isa/blocks/pv_quads.tmpl.c"
STAGE(pvq_dot, v, DTYPE, const float, 0, 1)
#ifdef V_FOUR_PACKS
#include "isa/dot/fours_kernel.tmpl.c"
#endif

#undef DTYPE
#undef ELEMENT
#undef PACK
#undef BIAS
#undef PACKED_CODES
#undef QK_BIAS
