/* What attention over packed rows has beside the rows: the scales of their blocks, of 32 elements and an f16 in front. */

enum { BLOCKS = DIM_MAX / 32 }; /* of a row */

/* The scales of a tile's rows as floats, [BLOCKS][TILE]: converted once, whatever the number of heads and vectors that
 * one serves. Of `count` rows, and of those behind them that repeat the last one; they are read in address order. */
INLINE void scales_of(float *scales, const uint8_t *const *rows, int count, int dim, int bytes)
{
    uint16_t halves[BLOCKS * TILE];
    const int blocks = (dim + 31) / 32, end = (int)round_up(count, LANES);
    for (int t = 0; t < end; t++) {
        const uint8_t *row = rows[t];
        _Pragma("GCC unroll 4") for (int b = 0; b < blocks; b++)
            memcpy(&halves[b * TILE + t], row + b * bytes, sizeof *halves);
    }
    for (int b = 0; b < blocks * TILE; b += TILE)
        for (int t = b; t < b + end; t += VL)
            v_store(scales + t, v_load_f16((const uint8_t *)&halves[t]));
}

/* Scores of a block: sums over its codes, times the scales; sums begin anew. */
INLINE void qk_block(vf *acc, vf *part, const float *scales, const int heads)
{
    const int tokens = QK_ACC / heads;
    UNROLL for (int t = 0; t < tokens; t++) {
        vf scale = v_set1(scales[t]);
        UNROLL for (int h = 0; h < heads; h++) {
            v_fma_into(&acc[h * tokens + t], scale, part[h * tokens + t]);
            part[h * tokens + t] = v_zero();
        }
    }
}

/* What codes of V are multiplied by, [BLOCKS][heads][TILE]: the weight of the token, times the block's scale. */
INLINE void weights_of(float *weights, const float *p, const kvb_tile *tile, int dim, int bytes, const int heads)
{
    float scales[BLOCKS * TILE];
    scales_of(scales, tile->v, tile->count, dim, bytes);
    for (int b = 0; b * 32 < dim; b++)
        for (int t = 0; t < tile->count; t += VL)
            UNROLL for (int h = 0; h < heads; h++)
                v_store(weights + (b * heads + h) * TILE + t,
                        v_mul(v_load(p + h * TILE + t), v_load(scales + b * TILE + t)));
}
