/* Weights of packs whose V lies in quads: what a pack's are is said in tier/dot.h. Those of four
 * packs and four tokens lie side by side, as the quads of tokens do that they meet:
 *
 *   bytes   [packs / 4][quads][4 packs][4 tokens]
 *
 * Behind the last pack there is itself. */

enum { FOUR_PACKS = 4, WEIGHED_QUAD = 16 /* bytes of a quad of tokens and four packs */ };
/* Bytes of a query row, so that those of a quad lie in different sets of a cache. */
enum { WEIGHED_ROW = FOUR_PACKS * TILE + LINE };

typedef struct quad_weights {
    int8_t bytes[Q_ROWS][WEIGHED_ROW];
    /* [packs][q_rows]: what one is worth, and what sums begin with */
    float step[DIM_MAX / 32][Q_ROWS], first[DIM_MAX / 32][Q_ROWS];
    int from, end; /* the packs that they are of */
    int tokens;    /* of the tile, up to a multiple of LANES */
} quad_weights;

/* The weights of four packs from `pack` on. */
INLINE int8_t *quad_weights_of(quad_weights *w, int q_row, int pack)
{
    return w->bytes[q_row] + (pack - w->from) / FOUR_PACKS * w->tokens * FOUR_PACKS;
}

/* Where a block has the scales of four packs. */
INLINE void quad_scales_at(int pack, int packs, int64_t *at)
{
    for (int i = 0; i < FOUR_PACKS; i++)
        at[i] = at_most(pack + i, packs - 1) * PACK_SCALES;
}

/* The scales of the next tile's weights are read before its first run is, and so ahead of all that
 * is touched meanwhile: asked for while this tile's are read. */
INLINE void quad_scales_fetch(const kvb_tile *tile, int t, const int64_t *at, const int order)
{
    if (order == ORDER_RUNS && t % LANES == 0)
        for (int i = 0; i < FOUR_PACKS; i += LINE / PACK_SCALES)
            kvb_fetch(tile->v.then + t * tile->v.bytes + at[i], true);
}

/* The largest of so many query rows, of four packs: to `most`, [4 packs][Q_ROWS]. */
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

/* The weights of all tokens as bytes, times `inverse`, [4 packs][Q_ROWS]; those of the next query
 * row lie WEIGHED_ROW further. */
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

/* Of four packs from `pack` on, and the query rows from `q_row` on. */
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

/* What sums of codes with `bias` begin with, of the tokens from `first` to `end`. */
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

/* What a slice of V is summed up of: the tokens of a run from `first` to `end`, their weights, and
 * where the sums go. All of it begins at a query row and a pack. */
typedef struct quad_run {
    kvb_side v;
    int first, end;
    int tokens; /* of the tile, up to a multiple of LANES */
    int fronts; /* lines of scales of a block */
    const int8_t *weights;
    const float *step, *begin; /* [packs][Q_ROWS], as quad_weights has them */
    const float *rescale;
    float *acc;
    int64_t v_pad, elements; /* from one query row to the next; and of one */
} quad_run;
