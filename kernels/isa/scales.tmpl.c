/* Scores of a block of packed rows: sums over its codes, times the scales, which are the f16 at its beginning. The sums
 * begin anew. */
INLINE void qk_block(vf *acc, vf *part, kvb_places k, int offset, const int heads)
{
    const int tokens = QK_ACC / heads;
    UNROLL for (int t = 0; t < tokens; t++) {
        vf scale = v_half(kvb_row_at(k, t) + offset);
        UNROLL for (int h = 0; h < heads; h++) {
            v_fma_into(&acc[h * tokens + t], scale, part[h * tokens + t]);
            part[h * tokens + t] = v_zero();
        }
    }
}
