/* dot8, and where there is DOT_SPLIT dot16, by products of bytes: four neighbours to a lane. One factor has no sign
 * where DOT_K_BIAS or DOT_V_BIAS is 128: codes are then taken with 128 added, and the sums begin that much lower. */

enum { VB = 4 * VL }; /* bytes of a vector */

/* A vector of q: VB codes of a head; or where V_PACKS, of all heads as many of each. A head's lie side by side. */
#ifdef V_PACKS
#define WIDTH_OF(slots) (VB / (slots))
enum { FEW_DOTS = 2 * (VB / LINE) }; /* most heads that read rows one after another */
#else
#define WIDTH_OF(slots) VB
enum { FEW_DOTS = VB / LINE };
#endif
INLINE int64_t dot_code(int slots, int head, int64_t d)
{
    const int width = WIDTH_OF(slots);
    return (d / width * slots + head) * width + d % width;
}

/* Whole numbers as signed bytes, and what a sum begins with. codes: [parts][dim / width][slots][width] */
INLINE void take_bytes(const kvb_group *group, int32_t way, const int parts)
{
    kvb_taken *taken = group->taken;
    const int64_t dim = round_up(group->dim, VB), part = group->slots * dim;
    for (int h = 0; h < group->slots; h++) {
        float inverse = dot_query_steps(group, h, way, &taken->step[h]);
        vf total = v_zero();
        for (int64_t d = 0; d < dim; d += VL) {
            enum { PART = VL < VB / HEADS ? VL : VB / HEADS }; /* lies together whatever the width */
            uint8_t bytes[2][VL];
            vf whole = dot_query_at(group, h, d, inverse), upper = whole;
            if (parts == 2) { /* upper bytes that leave lower ones from -128 to 127 */
                upper = v_round(v_mul(v_add(whole, v_set1(0.5f)), v_set1(1.0f / 256.0f)));
                v_store_i8(bytes[1], v_sub(whole, v_mul(upper, v_set1(256.0f))));
            }
            v_store_i8(bytes[0], upper);
            total = v_add(total, upper);
            for (int i = 0; i < parts; i++)
                for (int at = 0; at < VL; at += PART)
                    memcpy(taken->codes + i * part + dot_code(group->slots, h, d + at), bytes[i] + at, PART);
        }
        taken->first[h] = (int32_t)(-DOT_K_BIAS * v_hsum(total));
    }
}

INLINE void qk_step_bytes(vi *acc, kvb_places k, int at, const int8_t *q, int64_t part, const int heads,
                          const int tokens, const int parts)
{
    vi x[QK_ACC];
    UNROLL for (int t = 0; t < tokens; t++)
        x[t] = v_codes(kvb_row_at(k, t) + at);
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int i = 0; i < parts; i++) {
            vi w = v_load_bytes(q + i * part + h * VB);
            UNROLL for (int t = 0; t < tokens; t++)
                v_dot_query_into(&acc[(INDEX(h, heads) * tokens + t) * parts + INDEX(i, parts)], x[t], w);
        }
}

/* QK_ACC rows for one head, each whole. */
INLINE void qk_rows_bytes(vi *acc, const kvb_tile *tile, int first, ahead *cursor, const int8_t *q, int dim)
{
    UNROLL for (int t = 0; t < QK_ACC; t++) {
        const uint8_t *row = row_of(tile, tile->k, first + t, ORDER_ROWS);
        for (int at = 0; at < dim; at += 2 * VB)
            UNROLL for (int in = 0; in < 2 * VB; in += VB)
                if (at + in < dim) {
                    ahead_with(cursor, row + at + in, 2 * t + in / VB, ORDER_ROWS);
                    v_dot_query_into(&acc[t], v_codes(row + at + in), v_load_bytes(q + at + in));
                }
    }
}

INLINE void qk_tokens_bytes(const kvb_tile *tile, int first, const kvb_group *group, ahead *cursor, int head,
                            const float *each, float *scores, const int heads, const int slots, const int parts,
                            const int order)
{
    enum { STEPS_OF_LINE = LINE / VB };
    const kvb_places k = kvb_rows_from(tile->k, first);
    const int tokens = QK_ACC / heads / parts, dim = group->dim;
    const int64_t part = slots * round_up(dim, VB);
    const int8_t *q = group->taken->codes + head * VB;
    vi acc[QK_ACC];
    UNROLL for (int i = 0; i < QK_ACC; i++)
        acc[i] = v_none();
    int at = 0;
    if (order == ORDER_ROWS) {
        qk_rows_bytes(acc, tile, first, cursor, q, dim);
        at = dim;
    }
    for (; at + LINE <= dim; at += LINE, q += LINE * slots)
        UNROLL for (int s = 0; s < STEPS_OF_LINE; s++) {
            UNROLL for (int t = 0; t < tokens; t++)
                if (t % STEPS_OF_LINE == s)
                    ahead_line(cursor, order);
            qk_step_bytes(acc, k, at + s * VB, q + s * VB * slots, part, heads, tokens, parts);
        }
    if (at < dim)
        UNROLL for (int t = 0; t < tokens; t++)
            ahead_line(cursor, order);
    for (; at < dim; at += VB, q += VB * slots)
        qk_step_bytes(acc, k, at, q, part, heads, tokens, parts);
    vf sums[QK_ACC / VL];
    UNROLL for (int i = 0; i < heads * tokens; i += VL) {
        if (parts == 1) {
            sums[i / VL] = dot_sums(acc + i, group->taken->first[head]); /* of one head, or 0 */
            continue;
        }
        vf both[VL];
        UNROLL for (int l = i; l < i + VL; l++)
            both[l - i] = l < heads * tokens
                              ? v_fma(v_floats(acc[l * parts]), v_set1(256.0f), v_floats(acc[l * parts + parts - 1]))
                              : v_zero();
        sums[i / VL] = v_sums(both);
    }
    dot_scores(sums, each, scores, heads, tokens);
}

#include "isa/dot/dotcells.tmpl.c"
#ifdef V_PACKS
#include "isa/dot/dotpacked.tmpl.c"
#endif

INLINE void qk_tile_bytes(const kvb_tile *tile, const kvb_group *group, float *scores, const int heads,
                          const int parts, const int order)
{
    const int pass = heads < QK_HEADS ? heads : QK_HEADS, tokens = QK_ACC / pass / parts;
    ahead cursor = ahead_from(tile, tile->next.k, group->dim);
#ifdef V_PACKS
    if (heads > 1) {
        qk_tile_packed(tile, group, &cursor, scores, heads, order);
        return;
    }
#endif
    float each[QK_ACC * HEADS];
    dot_steps_of(group->taken->step, each, heads, tokens);
    for (int t = 0; t < tile->count; t += tokens) {
        ahead_of(&cursor, tile, tile->k, tile->next.k, t, order);
        UNROLL for (int h = 0; h < heads; h += pass)
            qk_tokens_bytes(tile, t, group, &cursor, h, each + h * tokens, scores + h * QUERY_SCORES + t, pass, heads, parts,
                            h == 0 ? order : ORDER_PLAIN);
    }
}

/* A tile's weights of each head as bytes, the upper ones first where there are two of each. */
typedef struct dot_weights {
    uint8_t bytes[2][HEADS * TILE];
    float step[HEADS], inverse[HEADS];
    int32_t first[2][HEADS]; /* what the sums of a run of rows begin with */
} dot_weights;

/* Those of a run, of heads from `head` on. */
INLINE void dot_weights_of(dot_weights *w, const float *p, int first, int end, int head, const int heads, const int parts)
{
    for (int h = head; h < head + heads; h++) {
        const vf inverse = v_set1(w->inverse[h]);
        vf total[2] = {v_zero(), v_zero()};
        for (int t = first; t < end; t += VL) {
            vf whole = v_round(v_mul(v_load(p + h * QUERY_SCORES + t), inverse)), upper = whole;
            if (parts == 2) { /* the floor of a 256th */
                upper = v_round(v_fma(whole, v_set1(1.0f / 256.0f), v_set1(-127.5f / 256.0f)));
                vf lower = v_sub(whole, v_mul(upper, v_set1(256.0f)));
                v_store_i8(w->bytes[1] + h * TILE + t, lower);
                total[1] = v_add(total[1], lower);
            }
            v_store_i8(w->bytes[0] + h * TILE + t, upper);
            total[0] = v_add(total[0], upper);
        }
        UNROLL for (int i = 0; i < parts; i++) {
            float sum = DOT_V_BIAS ? DOT_V_BIAS * v_hsum(total[i]) : 0.0f;
            w->first[i][h] = sum == sum ? -(int32_t)sum : 0;
        }
    }
}

enum { SLICE_SUMS = PV_ACC / 4 }; /* most heads of a slice, each with all its parts */

/* `slices` of VB elements of the rows from `first` to `end`, four rows at a time: each lane takes those of one element. */
INLINE void pv_slice_bytes(const kvb_tile *tile, int first, int end, const kvb_group *group, ahead *cursor,
                           const dot_weights *weights, const float *rescales, int head, int at, const int heads,
                           const int slices, const int parts, const int order)
{
    vi sum[4 * PV_ACC];
    UNROLL for (int h = 0; h < slices * heads; h++)
        UNROLL for (int i = 0; i < 4 * parts; i++)
            sum[INDEX(h, slices * heads) * 4 * parts + i] = v_set_int(weights->first[i / 4][head + h % heads]);
    for (int t = first; t < end; t += 4) {
        if (order != ORDER_ROWS && at % LINE == 0) /* cursors before there are rows to keep */
            UNROLL for (int i = 0; i < 4; i++)
                ahead_line(cursor, order);
        const uint8_t *rows[4];
        UNROLL for (int i = 0; i < 4; i++)
            rows[i] = row_of(tile, tile->v, t + i, order);
        if (order == ORDER_ROWS)
            UNROLL for (int i = 0; i < 4 * slices; i++)
                ahead_with(cursor, rows[i / slices] + at + i % slices * VB, i, order);
        UNROLL for (int s = 0; s < slices; s++) {
            vi x[4];
            v_quads(rows, at + s * VB, x);
            UNROLL for (int h = 0; h < heads; h++)
                UNROLL for (int i = 0; i < parts; i++) {
                    vi w = dot_four(weights->bytes[i] + (head + h) * TILE + t);
                    vi *own = sum + ((INDEX(s, slices) * heads + INDEX(h, heads)) * parts + INDEX(i, parts)) * 4;
                    UNROLL for (int j = 0; j < 4; j++)
                        v_dot_weights_into(&own[j], w, x[j]);
                }
        }
    }
    UNROLL for (int i = 0; i < slices * heads; i++) {
        const int h = i % heads, from = at + i / heads * VB;
        const vi *own = sum + INDEX(i, slices * heads) * parts * 4;
        vf found[4], step = v_set1(weights->step[head + h]), rescale = v_set1(rescales[head + h]);
        float *to = group->acc + (head + h) * group->dim_pad + from;
        UNROLL for (int j = 0; j < 4; j++)
            found[j] = parts == 1 ? v_floats(own[j])
                                  : v_fma(v_floats(own[j]), v_set1(256.0f), v_floats(own[parts * 4 - 4 + j]));
        v_unquad(found);
        UNROLL for (int j = 0; j < 4; j++)
            if (from + j * VL < group->dim_pad)
                v_store(to + j * VL, v_fma(found[j], step, v_mul(v_load(to + j * VL), rescale)));
    }
}

/* Of so many heads, from `head` on. */
INLINE void pv_heads_bytes(const kvb_tile *tile, const kvb_group *group, const float *p, dot_weights *weights, int head,
                           const int heads, const int parts, const int order)
{
    const int end = (int)round_up(tile->count, LANES), run = order == ORDER_RUNS ? (int)tile->schedule->run_rows : TILE;
    ahead cursor = ahead_from(tile, tile->next.v, group->dim);
    const float *rescale = group->rescale;
    for (int first = 0; first < end; first += run, rescale = ones) {
        const int last = (int)at_most(first + run, end);
        int at = 0;
        dot_weights_of(weights, p, first, last, head, heads, parts);
        ahead_of(&cursor, tile, tile->v, tile->next.v, first, order);
#define SLICES(slices)                                                                                            \
    for (; at + (slices - 1) * VB < group->dim; at += slices * VB)                                                \
        pv_slice_bytes(tile, first, at_most(last, tile->count), group, &cursor, weights, rescale, head, at, heads, \
                       slices, parts, order);
        if (order == ORDER_ROWS && heads == 1)
            SLICES(4)
        if (order == ORDER_ROWS)
            SLICES(2)
        SLICES(1)
#undef SLICES
    }
}

/* Only the first heads prefetch. */
INLINE void pv_tile_bytes(const kvb_tile *tile, const kvb_group *group, const float *p, const int heads,
                          const int parts, const int order)
{
    const int pass = heads * parts < SLICE_SUMS ? heads : SLICE_SUMS / parts;
    dot_weights weights;
    for (int h = 0; h < heads; h++)
        weights.inverse[h] = dot_weight_steps(p + h * QUERY_SCORES, (int)round_up(tile->count, LANES),
                                              parts == 1 ? READ_DOT8 : READ_DOT16, &weights.step[h]);
    pv_heads_bytes(tile, group, p, &weights, 0, pass, parts, order);
    for (int h = pass; h < heads; h += pass)
        pv_heads_bytes(tile, group, p, &weights, h, pass, parts, ORDER_PLAIN);
}

/* Rows one after another: where registers hold the sums of all of D, and a row is more than a line. */
INLINE bool whole_bytes(int64_t heads, int64_t dim, const int parts)
{
    return parts == 1 && heads <= FEW_DOTS && dim > LINE && heads * dim <= 4 * VB;
}

#define DOT_TILE(stage, word, floats, parts)                                                                        \
    INLINE void stage##_tile_##word(const kvb_tile *tile, const kvb_group *group, floats *scores, const int heads,  \
                                    const int order)                                                                \
    {                                                                                                               \
        stage##_tile_bytes(tile, group, scores, heads, parts, order);                                               \
    }                                                                                                               \
    STAGE(stage, word, floats, (parts) == 1 ? FEW_DOTS : 0, 1)
#define DOT_BYTES_WAY(word, way, parts)                                                                             \
    static void take_##word(const kvb_group *group) { take_bytes(group, way, parts); }                              \
    static bool whole_##word(int64_t heads, int64_t dim) { return whole_bytes(heads, dim, parts); }                 \
    DOT_TILE(qk, word, float, parts)                                                                                \
    DOT_TILE(qkt, word, float, parts)                                                                               \
    DOT_TILE(pv, word, const float, parts)   

#define DOT_BYTES_ROWS(word, parts) DOT_ROWS(word, BLOCK_SUMS / parts, SLICE_SUMS / parts, whole_##word)

DOT_BYTES_WAY(dot8, READ_DOT8, 1)
#define ROWS_DOT8 DOT_BYTES_ROWS(dot8, 1)
#ifdef DOT_SPLIT
DOT_BYTES_WAY(dot16, READ_DOT16, 2)
#define ROWS_DOT16 DOT_BYTES_ROWS(dot16, 2)
#endif
