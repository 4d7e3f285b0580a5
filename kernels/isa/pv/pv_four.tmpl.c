/* PV of whole rows in address order, for 4 query rows and 5 to 8 vectors of D: f32 if a vector is a
 * line (WHOLE_MOST is 4). pv_slices does shorter rows, pv_pairs longer ones.
 *
 *   row t    | x0 | x1 | ... | x7 |      sum[h][i] += p[h][t] * x[i]
 *
 * These are 4 x 8 sums. The compiler keeps at most a fifth of them in L1. */
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

/* Do the tile if rows have 5 to 8 vectors. Returns whether they have. */
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
