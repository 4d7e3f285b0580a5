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

/* What cells of a pack meet, where 16 tokens lie together: whole numbers, what one is worth, and
 * what a sum over the pack begins with. They stand behind the parts, [packs][slots]. */
typedef struct dot_pack {
    int8_t codes[32];
    float step;
    int32_t begin;
} dot_pack;

INLINE dot_pack *dot_packs_of(const kvb_group *group)
{
    const int64_t parts = round_up(group->k_dim, 32 * DOT_PACKS) / 32 / DOT_PACKS * group->slots;
    return (dot_pack *)(void *)(group->prepared->codes + parts * (int64_t)sizeof(dot_part));
}

/* What sums of codes with `bias` begin with: a lane's is that of the four bytes it meets. */
INLINE vi dot_begun(const int8_t *codes, const int bias)
{
    vi sum = v_none();
    UNROLL_FOR (int i = 0; i < DOT_VECS; i++)
        v_dot_weights_into(&sum, v_set_int((int32_t)(bias * 0x01010101u)),
                           v_load_bytes(codes + i * VB));
    return v_int_sub(v_none(), sum);
}

/* [dim / 32 / DOT_PACKS][slots]. Beginnings are made when codes of all parts are written: a load
 * would wait for the stores that it is made of. */
INLINE void prepare_packs(const kvb_group *group, const int bias)
{
    enum { PART = 32 * DOT_PACKS };
    const int64_t dim = round_up(group->k_dim, PART), slots = group->slots;
    dot_part *parts = (dot_part *)(void *)group->prepared->codes;
    dot_pieces pieces;
    dot_query_steps(group, dim, 32, &pieces);
    for (int h = 0, n = 0; h < slots; h++)
        for (int64_t d = 0; d < dim; d += PART, n += DOT_PACKS) {
            dot_part *to = &parts[d / PART * slots + h];
            vf step = v_set1(pieces.step[n]);
            if (DOT_PACKS > 1)
                step = v_fill(step, VL / DOT_PACKS, pieces.step[n + 1]);
            v_store(to->step, step);
            UNROLL_FOR (int i = 0; i < PART; i += VL)
                v_store_i8((uint8_t *)to->codes + i,
                           dot_query_at(group, h, d + i, pieces.inverse[n + i / 32]));
        }
    for (int64_t i = 0; i < dim / PART * slots; i++)
        v_store_ints(parts[i].first, dot_begun(parts[i].codes, bias));
    dot_pack *packs = dot_packs_of(group);
    for (int64_t h = 0, n = 0; h < slots; h++)
        for (int64_t pack = 0; pack < dim / 32; pack++, n++) {
            const dot_part *from = &parts[pack / DOT_PACKS * slots + h];
            dot_pack *to = &packs[pack * slots + h];
            int32_t total = 0;
            memcpy(to->codes, from->codes + pack % DOT_PACKS * 32, sizeof to->codes);
            for (int i = 0; i < 32; i++)
                total += to->codes[i];
            to->step = pieces.step[n];
            to->begin = -bias * total;
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
        .transposed = BY_CLASS(qkt_dot, dtype),                  \
        .shared_transposed = PACK_ROWS,                          \
    },
#define PV_DOT_PACKED(dtype, name)                                             \
    .pv[WAY_DOT_##name] = {                                                    \
        .half = {.most = Q_ROWS, .shared = SLICE_SUMS / DOT_VECS, .step = VB}, \
        .rows = BY_CLASS(pv_dot, dtype),                                       \
        .transposed = BY_CLASS(pvq_dot, dtype),                                \
        .shared_transposed = PV_MOST,                                          \
    },
