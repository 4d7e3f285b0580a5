/* QK of dot over packed rows, q8_0 and q4_0, for any tier. A pack's codes are multiplied by as many
 * bytes of q, four neighbours in a lane. Sums are whole numbers, which are converted to floats once
 * for each pack and query row:
 *
 *   q[h]      | b0 b1 b2 b3 | b4 ...   and for each lane a step, and the start value of its sum
 *   row t     | c0 c1 c2 c3 | c4 ...   acc[h][t] += float(b0 c0 + b1 c1 + b2 c2 + b3 c3) * factor
 *
 *   with factor = scale of the pack * step
 *
 * Codes have `bias` added to their values, so sums begin lower. */

/* q for the cells of a pack, in blocks of 16 tokens: codes, the value of code 1, and the start
 * value of a sum over the pack. */
typedef struct dot_pack {
    int8_t codes[32];
    float step;
    int32_t begin;
} dot_pack;

/* The part of a query row's q for DOT_PACKS packs. */
typedef struct dot_part {
    float step[VL];
    int32_t first[VL];
    int8_t codes[DOT_VECS * VB];
} dot_part;

/* q is [packs][slots], with the parts after it. Packs after dim, up to a multiple of four, are
 * zero. / */
enum { PACKS_TOGETHER = 4 };
INLINE int64_t dot_packs_count(int64_t dim) { return round_up((dim + 31) / 32, PACKS_TOGETHER); }
INLINE dot_pack *dot_packs_of(const kvb_group *group)
{
    return (dot_pack *)(void *)group->prepared->codes;
}
INLINE void *dot_parts_of(const kvb_group *group)
{
    const int64_t packs = dot_packs_count(group->k_dim) * group->slots;
    return group->prepared->codes + round_up(packs * (int64_t)sizeof(dot_pack), LINE);
}

/* Return the start values of sums of codes with `bias`: each lane's, for the four bytes of q in it.
 */
INLINE vi dot_begun(const int8_t *codes, const int bias)
{
    vi sum = v_none();
    UNROLL_FOR (int i = 0; i < DOT_VECS; i++)
        v_dot_weights_into(&sum, v_set_int((int32_t)(bias * 0x01010101u)),
                           v_load_bytes(codes + i * VB));
    return v_int_sub(v_none(), sum);
}

/* Make a query row's parts from its packs. Start values are made after the codes of all parts are
 * stored: a load would wait for the recent stores of its bytes. */
INLINE void dot_parts_make(dot_part *parts, const dot_pack *packs, int64_t count, int64_t slots,
                           const int bias)
{
    count /= DOT_PACKS;
    for (int64_t i = 0; i < count * slots; i++) {
        const dot_pack *from = packs + i / slots * DOT_PACKS * slots + i % slots;
        vf step = v_set1(from->step);
        if (DOT_PACKS > 1)
            step = v_fill(step, VL / DOT_PACKS, from[slots].step);
        v_store(parts[i].step, step);
        for (int n = 0; n < DOT_PACKS; n++)
            memcpy(parts[i].codes + n * 32, from[n * slots].codes, sizeof from->codes);
    }
    for (int64_t i = 0; i < count * slots; i++)
        v_store_ints(parts[i].first, dot_begun(parts[i].codes, bias));
}

#ifdef V_FOUR_PACKS
#include "isa/dot/fours.tmpl.c"
#endif

INLINE void prepare_packs(const kvb_group *group, const int bias)
{
    const int64_t count = dot_packs_count(group->k_dim), slots = group->slots;
    dot_pack *packs = dot_packs_of(group);
    dot_pieces pieces;
    dot_query_steps(group, 32 * count, 32, &pieces);
    for (int h = 0, n = 0; h < slots; h++)
        for (int64_t pack = 0; pack < count; pack++, n++) {
            dot_pack *to = &packs[pack * slots + h];
            vf total = v_zero();
            UNROLL_FOR (int i = 0; i < 32; i += VL) {
                vf whole = dot_query_at(group, h, pack * 32 + i, pieces.inverse[n]);
                v_store_i8((uint8_t *)to->codes + i, whole);
                total = v_add(total, whole);
            }
            to->step = pieces.step[n];
            to->begin = -bias * (int32_t)v_hsum(total);
        }
#ifdef V_FOUR_PACKS
    if (fours_take(group->k_dim)) {
        fours_parts_make(dot_parts_of(group), packs, count, slots);
        return;
    }
#endif
    dot_parts_make(dot_parts_of(group), packs, count, slots, bias);
}

#ifdef V_NIBBLES
#include "isa/blocks/nibbles.tmpl.c"
#endif

#define DTYPE q8_0
#define ELEMENT 34
#define BIAS 0
#define PACKED_CODES v_pack_bytes
#include "isa/dot/packs_kernel.tmpl.c"
#define DTYPE q4_0
#define ELEMENT 18
#define BIAS 8
#define PACKED_CODES v_pack_nibbles
#include "isa/dot/packs_kernel.tmpl.c"

#ifdef V_FOUR_PACKS
#define PACKS_BY_CLASS(stage, dtype) BY_CLASS(stage##_packs, dtype)
#else
#define PACKS_BY_CLASS(stage, dtype) BY_CLASS(stage##_dot, dtype)
#endif
#define QK_DOT_PACKED(dtype, name)                               \
    .qk[WAY_DOT_##name] = {                                      \
        .half = {.most = Q_ROWS, .shared = QK_MOST, .step = VB}, \
        .prepare_query = prepare_query_dot_##dtype,              \
        .rows = PACKS_BY_CLASS(qk, dtype),                       \
        .transposed = BY_CLASS(qkt_dot, dtype),                  \
        .shared_transposed = PACK_ROWS,                          \
    },
#define PV_DOT_PACKED(dtype, name)                                             \
    .pv[WAY_DOT_##name] = {                                                    \
        .half = {.most = Q_ROWS, .shared = SLICE_SUMS / DOT_VECS, .step = VB}, \
        .rows = PACKS_BY_CLASS(pv, dtype),                                     \
        .transposed = BY_CLASS(pvq_dot, dtype),                                \
        .shared_transposed = PV_MOST,                                          \
        .shared_scales = WEIGHED_ROWS,                                         \
    },
