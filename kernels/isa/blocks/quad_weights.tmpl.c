/* Weights of packs whose V is in quads, by the rules of tier/dot.h. Weights of four packs and four
 * tokens are side by side, like the quads of tokens that they are multiplied by:
 *
 *   bytes   [packs / 4][quads][4 packs][4 tokens]
 *
 * After the last pack, the last pack is repeated. */

enum { FOUR_PACKS = 4, WEIGHED_QUAD = 16 /* bytes for a quad of tokens and four packs */ };
/* Bytes of a query row. Weights of one quad are then in different cache sets. */
enum { WEIGHED_ROW = FOUR_PACKS * TILE + LINE };

typedef struct quad_weights {
    int8_t bytes[Q_ROWS][WEIGHED_ROW];
    /* [packs][q_rows]: the value of byte 1, and the start value of sums */
    float step[DIM_MAX / 32][Q_ROWS], first[DIM_MAX / 32][Q_ROWS];
    int from, end; /* the packs of these weights */
    int tokens;    /* tokens of the tile, up to a multiple of LANES */
} quad_weights;

/* Return the weights for four packs from `pack` on. */
INLINE int8_t *quad_weights_of(quad_weights *w, int q_row, int pack)
{
    return w->bytes[q_row] + (pack - w->from) / FOUR_PACKS * w->tokens * FOUR_PACKS;
}

/* Set the offsets in a block of the scales of four packs. */
INLINE void quad_scales_at(int pack, int packs, int64_t *at)
{
    for (int i = 0; i < FOUR_PACKS; i++)
        at[i] = at_most(pack + i, packs - 1) * PACK_SCALES;
}

/* Prefetch scales of the next tile while this tile's scales are read: weights of the next tile are
 * made before its first run is read, and so before its lines are touched. */
INLINE void quad_scales_fetch(const kvb_tile *tile, int t, const int64_t *at, const int order)
{
    if (order == ORDER_RUNS && t % LANES == 0)
        for (int i = 0; i < FOUR_PACKS; i += LINE / PACK_SCALES)
            kvb_fetch(tile->v.then + t * tile->v.bytes + at[i], true);
}

/* Find the largest weights of `q_rows` query rows for four packs: most[4 packs][Q_ROWS]. */
INLINE void quad_largest(const kvb_tile *tile, const float *p, const int64_t *at, int tokens,
                         float *most, const int q_rows, const bool signs, const int order)
{
    vf largest[FOUR_PACKS * WEIGHED_ROWS];
    UNROLL_FOR (int i = 0; i < FOUR_PACKS * q_rows; i++)
        largest[i] = v_zero();
    for (int t = 0; t < tokens; t += VL) {
        const uint8_t *block = row_of(&tile->v, t / LANES * LANES, order) + t % LANES * 2;
        vf scale[FOUR_PACKS];
        quad_scales_fetch(tile, t, at, order);
        UNROLL_FOR (int i = 0; i < FOUR_PACKS; i++) {
            scale[i] = v_load_f16(block + at[i]);
            if (signs)
                scale[i] = v_abs(scale[i]);
        }
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            const vf x = v_load(p + h * QUERY_SCORES + t);
            UNROLL_FOR (int i = 0; i < FOUR_PACKS; i++)
                largest[h * FOUR_PACKS + i] =
                    v_larger(v_mul(x, scale[i]), largest[h * FOUR_PACKS + i]);
        }
    }
    UNROLL_FOR (int i = 0; i < FOUR_PACKS * q_rows; i++)
        most[i % FOUR_PACKS * Q_ROWS + i / FOUR_PACKS] = v_hmax(largest[i]);
}

/* Write the weights of all tokens, times inverse[4 packs][Q_ROWS], as bytes. Those of the next
 * query row are WEIGHED_ROW bytes further. */
INLINE void quad_bytes(const kvb_tile *tile, const float *p, const int64_t *at, int tokens,
                       const float *inverse, int8_t *to, const int q_rows, const int order)
{
    for (int t = 0; t < tokens; t += VL) {
        const uint8_t *block = row_of(&tile->v, t / LANES * LANES, order) + t % LANES * 2;
        vf scale[FOUR_PACKS];
        UNROLL_FOR (int i = 0; i < FOUR_PACKS; i++)
            scale[i] = v_load_f16(block + at[i]);
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            const vf x = v_load(p + h * QUERY_SCORES + t);
            vf whole[FOUR_PACKS];
            UNROLL_FOR (int i = 0; i < FOUR_PACKS; i++)
                whole[i] = v_mul(v_mul(x, scale[i]), v_set1(inverse[i * Q_ROWS + h]));
            v_store_quads(to + h * WEIGHED_ROW + t * FOUR_PACKS, whole);
        }
    }
}

/* Make the weights for four packs from `pack` on, and the query rows from `q_row` on. */
INLINE void quad_weights_make(quad_weights *w, const kvb_tile *tile, const float *p, int pack,
                              int packs, int q_row, const int q_rows, const bool signs,
                              const int order)
{
    const int some = q_rows < WEIGHED_ROWS ? q_rows : WEIGHED_ROWS;
    float inverse[FOUR_PACKS * Q_ROWS], *step = w->step[pack];
    int64_t at[FOUR_PACKS];
    quad_scales_at(pack, packs, at);
    for (int i = 0; i < FOUR_PACKS * Q_ROWS; i += VL)
        v_store(step + i, v_zero());
    for (int h = q_row; h < q_row + q_rows; h += some)
        quad_largest(tile, p + h * QUERY_SCORES, at, w->tokens, step + h, some, signs, order);
    for (int i = 0; i < FOUR_PACKS * Q_ROWS; i += VL) {
        const vf levels = v_set1(DOT_WEIGHT), most = v_load(step + i), steps = v_div(levels, most);
        v_store(inverse + i, v_unless_below(steps, v_sub(v_set1(3.0e38f), steps), v_zero()));
        v_store(step + i, v_div(most, levels));
    }
    for (int h = q_row; h < q_row + q_rows; h += some)
        quad_bytes(tile, p + h * QUERY_SCORES, at, w->tokens, inverse + h,
                   quad_weights_of(w, h, pack), some, order);
}

/* Compute the start values of sums of codes with `bias`, for the tokens from `first` to `end`. */
INLINE void quad_firsts(quad_weights *w, int first, int end, int q_row, const int q_rows,
                        const int bias)
{
    for (int pack = w->from; pack < w->end; pack += FOUR_PACKS)
        for (int h = q_row; h < q_row + q_rows; h++) {
            const int8_t *bytes = quad_weights_of(w, h, pack);
            int32_t lanes[VL], sum[FOUR_PACKS] = {0};
            vi total = v_none();
            for (int i = first * FOUR_PACKS; i < end * FOUR_PACKS; i += VB)
                v_dot_codes_into(&total, v_set_int((int32_t)(bias * 0x01010101u)),
                                 v_load_bytes(bytes + i), true);
            v_store_ints(lanes, total);
            for (int i = 0; i < VL; i++)
                sum[i % FOUR_PACKS] -= lanes[i];
            for (int i = 0; i < FOUR_PACKS; i++)
                w->first[pack + i][h] = (float)sum[i];
        }
}

/* What a slice of V is summed from: the tokens of a run from `first` to `end`, their weights, and
 * the accumulators. All pointers begin at a query row and a pack. */
typedef struct quad_run {
    kvb_side v;
    int first, end;
    int tokens; /* tokens of the tile, up to a multiple of LANES */
    int fronts; /* lines of scales in a block */
    const int8_t *weights;
    const float *step, *begin; /* [packs][Q_ROWS], as quad_weights has them */
    const float *rescale;
    float *acc;
    int64_t v_pad, elements; /* floats from one query row to the next; elements of a query row */
} quad_run;
