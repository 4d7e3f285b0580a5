/* PV of whole rows in the order of addresses, for 4 query rows and 5 to 8 vectors of D: f32 where a
 * vector is a line (WHOLE_MOST is 4). Shorter rows are a slice of pv_slices, longer ones go
 * through pv_pairs.
 *
 *   row t    | x0 | x1 | ... | x7 |      sum[h][i] += p[h][t] * x[i]
 *
 * These are 4 x 8 sums, of which a fifth at most is kept in L1: compilers choose which. */
INLINE void CAT(pv_four_of_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p,
                                    const int vecs)
{
    const int64_t stride = tile->v.bytes, distance = tile->v.schedule->distance, pad = group->v_pad;
    const uint8_t *row = tile->v.rows.from;
    vf sum[2 * PV_ACC];
    UNROLL_FOR (int h = 0; h < 4; h++)
        UNROLL_FOR (int i = 0; i < vecs; i++)
            sum[h * vecs + i] =
                v_mul(v_load(group->acc + h * pad + i * VL), v_set1(group->rescale[h]));
    for (int t = 0; t < tile->count; t++, row += stride) {
        vf w[4];
        UNROLL_FOR (int h = 0; h < 4; h++)
            w[h] = v_set1(p[h * QUERY_SCORES + t]);
        UNROLL_FOR (int i = 0; i < vecs; i++) {
            if (i % LINES_PER_REQUEST == 0)
                kvb_fetch(row + OFFSET(i * VL) + distance, true);
            vf x = LOAD(row, i * VL);
            UNROLL_FOR (int h = 0; h < 4; h++)
                v_fma_into(&sum[h * vecs + i], w[h], x);
        }
    }
    UNROLL_FOR (int h = 0; h < 4; h++)
        UNROLL_FOR (int i = 0; i < vecs; i++)
            v_store(group->acc + h * pad + i * VL, sum[h * vecs + i]);
}

/* Whether rows are of so many vectors. */
INLINE bool CAT(pv_four_, DTYPE)(const kvb_tile *tile, const kvb_group *group, const float *p)
{
    switch ((group->v_dim + VL - 1) / VL) {
    case 5:
        CAT(pv_four_of_, DTYPE)(tile, group, p, 5);
        return true;
    case 6:
        CAT(pv_four_of_, DTYPE)(tile, group, p, 6);
        return true;
    case 7:
        CAT(pv_four_of_, DTYPE)(tile, group, p, 7);
        return true;
    case 8:
        CAT(pv_four_of_, DTYPE)(tile, group, p, 8);
        return true;
    default:
        return false;
    }
}
