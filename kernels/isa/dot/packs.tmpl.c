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
#ifdef V_FOUR_PACKS
enum { PART_PACKS = 4, PART_VECS = 8 };
#else
enum { PART_PACKS = DOT_PACKS, PART_VECS = DOT_VECS };
#endif
typedef struct dot_part {
    float step[VL];
    int32_t first[VL];
    int8_t codes[PART_VECS * VB];
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
    const int64_t parts = round_up(group->k_dim, 32 * PART_PACKS) / 32 / PART_PACKS * group->slots;
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

#ifdef V_FOUR_PACKS
INLINE void prepare_packs(const kvb_group *group, const int bias)
{
    const int64_t dim = round_up(group->k_dim, 128), slots = group->slots, packs = dim / 32;
    dot_part *parts = (dot_part *)(void *)group->prepared->codes;
    dot_pack *each = dot_packs_of(group);
    dot_pieces pieces;
    dot_query_steps(group, dim, 32, &pieces);
    for (int64_t h = 0, n = 0; h < slots; h++)
        for (int64_t pack = 0; pack < packs; pack++, n++) {
            dot_pack *to = &each[pack * slots + h];
            vf total = v_zero();
            UNROLL_FOR (int i = 0; i < 32; i += VL) {
                vf whole = dot_query_at(group, (int)h, pack * 32 + i, pieces.inverse[n]);
                v_store_i8((uint8_t *)to->codes + i, whole);
                total = v_add(total, whole);
            }
            to->step = pieces.step[n];
            to->begin = (int32_t)((float)-bias * v_hsum(total));
        }
    for (int64_t i = 0; i < packs / 4 * slots; i++) {
        const dot_pack *from = &each[i / slots * 4 * slots + i % slots];
        int32_t four[10][4];
        for (int pack = 0; pack < 4; pack++) {
            const dot_pack *own = from + pack * slots;
            UNROLL_FOR (int j = 0; j < 8; j++)
                memcpy(&four[j][pack], own->codes + 4 * j, 4);
            memcpy(&four[8][pack], &own->step, 4);
            four[9][pack] = own->begin;
        }
        KEEP_IN_MEMORY(four);
        UNROLL_FOR (int j = 0; j < 8; j++)
            v_store_bytes((uint8_t *)parts[i].codes + j * VB, v_each_of(four[j]));
        v_store_ints((int32_t *)(void *)parts[i].step, v_each_of(four[8]));
        v_store_ints(parts[i].first, v_each_of(four[9]));
    }
}
#else
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
#endif

#ifdef V_FOUR_PACKS
#define KERNEL "isa/dot/packs_fours.tmpl.c"
#define PACK 32
#define FOUR_ROWS(rows, t)                                                      \
    {kvb_row_at(rows, t), kvb_row_at(rows, (t) + 1), kvb_row_at(rows, (t) + 2), \
     kvb_row_at(rows, (t) + 3)}

/* `lines` of each of four rows. */
INLINE void fours_prefetch(prefetch *cursor, int lines, const int order)
{
    if (order != ORDER_PLAIN)
        for (; lines > 0; lines--)
            UNROLL_FOR (int i = 0; i < 4; i++)
                prefetch_line(cursor, order);
}

/* Four packs' weights of a tile: bytes [quads][4 packs][4 tokens]; in each lane what
 * one is worth, and what its sums begin with. */
typedef struct fours_weights {
    int8_t bytes[Q_ROWS][4 * TILE];
    float step[Q_ROWS][VL];
    int32_t first[Q_ROWS][VL];
} fours_weights;

/* Out of scales [quads][4 packs][4 tokens] and the largest of each lane. */
INLINE void fours_bytes(fours_weights *w, const uint16_t *scales, const vf *most, const float *p,
                        int end, const int q_rows, const int bias)
{
    const vf levels = v_set1(DOT_WEIGHT);
    vf inverse[Q_ROWS];
    vi total[Q_ROWS];
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vf all = v_lanes_max(most[h]), steps = v_number(v_div(levels, all));
        inverse[h] = v_unless_below(steps, v_sub(v_set1(3.0e38f), steps), v_zero());
        v_store(w->step[h], v_div(all, levels));
        total[h] = v_none();
    }
    for (int t = 0; t < end; t += LANES) {
        vf scale[4], x[4];
        UNROLL_FOR (int i = 0; i < 4; i++)
            scale[i] = v_load_f16((const uint8_t *)(scales + 4 * t + 16 * i));
        UNROLL_FOR (int h = 0; h < q_rows; h++) {
            UNROLL_FOR (int i = 0; i < 4; i++)
                x[i] =
                    v_mul(v_mul(scale[i], v_fours(p + h * QUERY_SCORES + t + 4 * i)), inverse[h]);
            const vi bytes = v_bytes_of(x);
            v_store_bytes((uint8_t *)w->bytes[h] + 4 * t, v_turned_lanes(bytes));
            if (bias)
                v_dot_weights_into(&total[h], v_set_int((int32_t)(bias * 0x01010101u)), bytes);
        }
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++)
        v_store_ints(w->first[h], v_int_sub(v_none(), v_lanes_sum(total[h])));
}
#else
#define KERNEL "isa/dot/packs_kernel.tmpl.c"
#endif
#define DTYPE q8_0
#define ELEMENT 34
#define BIAS 0
#define PACKED_CODES v_pack_bytes
#include KERNEL
#define DTYPE q4_0
#define ELEMENT 18
#define BIAS 8
#define PACKED_CODES v_pack_nibbles
#include KERNEL

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
