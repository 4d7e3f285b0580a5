/* QK of dot over packed rows, q8_0 and q4_0, of any tier. A pack's codes meet as many bytes of
 * q, four neighbours to a lane; what they add up to is whole, and becomes floats once for each
 * pack and query row:
 *
 *   q[h]      | b0 b1 b2 b3 | b4 ...   and for each lane a step, and what its sum begins with
 *   row t     | c0 c1 c2 c3 | c4 ...   acc[h][t] += float(b0 c0 + b1 c1 + b2 c2 + b3 c3) * factor
 *
 *   with factor = scale of the pack * step
 *
 * Codes have `bias` added to what they mean: sums begin that much lower. */

/* So much of q of a query row as meets DOT_PACKS packs. */
typedef struct dot_part {
    float step[VL];
    int32_t first[VL];
    int8_t codes[DOT_VECS * VB];
} dot_part;

/* [dim / 32 / DOT_PACKS][slots] */
INLINE void prepare_packs(const kvb_group *group, const int bias)
{
    enum { PACK_LANES = VL / DOT_PACKS };
    dot_part *parts = (dot_part *)(void *)group->prepared->codes;
    for (int h = 0; h < group->slots; h++)
        for (int64_t d = 0; d < round_up(group->k_dim, 32 * DOT_PACKS); d += 32) {
            const int64_t nth = d / 32 % DOT_PACKS, lane = nth * PACK_LANES;
            dot_part *to = parts + d / 32 / DOT_PACKS * group->slots + h;
            int8_t *codes = to->codes + nth * 32;
            float step,
                inverse = dot_query_steps(group, h, d, at_most(d + 32, group->k_pad), &step);
            for (int i = 0; i < 32; i += VL)
                v_store_i8((uint8_t *)codes + i, dot_query_at(group, h, d + i, inverse));
            KEEP_IN_MEMORY(*to);
            for (int i = 0; i < PACK_LANES; i++) {
                to->step[lane + i] = step;
                to->first[lane + i] = 0;
            }
            for (int i = 0; i < 32; i++)
                to->first[lane + i / 4 % PACK_LANES] -= bias * codes[i];
        }
}

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

#define QK_DOT_PACKED(dtype, name)                               \
    .qk[WAY_DOT_##name] = {                                      \
        .half = {.most = Q_ROWS, .shared = QK_MOST, .step = VB}, \
        .prepare_query = prepare_query_dot_##dtype,              \
        .rows = BY_CLASS(qk_dot, dtype),                         \
        .shared_transposed = QK_MOST,                            \
    },
#define PV_DOT_PACKED(dtype, name)                                             \
    .pv[WAY_DOT_##name] = {                                                    \
        .half = {.most = Q_ROWS, .shared = SLICE_SUMS / DOT_VECS, .step = VB}, \
        .rows = BY_CLASS(pv_dot, dtype),                                       \
    },
