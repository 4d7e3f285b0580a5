/* dot of i8 rows: four neighbours in a lane. If DOT_BIAS is 128, one factor is unsigned: 128 is
 * added to the codes of K, and the sums begin lower. */

/* A vector of q has VB codes of one query row, or with V_SHARED equal parts of all query rows.
 * Codes of a query row are side by side. */
#ifdef V_SHARED
#define WIDTH_OF(slots) (VB / (slots))
#define FEW_DOTS (2 * (VB / LINE)) /* most query rows for which rows are read whole */
#else
#define WIDTH_OF(slots) VB
#define FEW_DOTS (VB / LINE)
#endif
INLINE int64_t dot_code(int slots, int q_row, int64_t d)
{
    const int width = WIDTH_OF(slots);
    return (d / width * slots + q_row) * width + d % width;
}

/* Make q as signed bytes, with the start values of sums. codes: [dim / width][slots][width]. */
static void prepare_query_dot_i8(const kvb_group *group)
{
    enum { LEAST = WIDTH_OF(Q_ROWS) }; /* the least width of any group */
    kvb_prepared *prepared = group->prepared;
    const int64_t dim = round_up(group->k_dim, VB), width = WIDTH_OF(group->slots);
    dot_pieces pieces;
    dot_query_steps(group, dim, dim, &pieces);
    for (int h = 0; h < group->slots; h++) {
        int8_t row[DIM_MAX], *to = prepared->codes + h * width;
        vf total = v_zero();
        for (int64_t d = 0; d < dim; d += VL) {
            vf whole = dot_query_at(group, h, d, pieces.inverse[h]);
            v_store_i8((uint8_t *)row + d, whole);
            total = v_add(total, whole);
        }
        for (int64_t d = 0; d < dim; d += width, to += group->slots * width)
            for (int64_t at = 0; at < width; at += LEAST)
                memcpy(to + at, row + d + at, LEAST);
        prepared->step[h] = pieces.step[h];
        prepared->first[h] = (int32_t)(-DOT_BIAS * v_hsum(total));
    }
}

#include "isa/dot/qk_t.tmpl.c"
#ifdef V_SHARED
#include "isa/dot/qk_shared.tmpl.c"
#endif
#include "isa/dot/qk.tmpl.c"

#define DTYPE i8
#define ELEMENT 1
#define PACK 1
#define BIAS 0
#include "isa/dot/pv.tmpl.c"
#include "isa/blocks/pv_quads.tmpl.c"

/* Read rows whole if registers hold the sums of all of D, and a row is longer than a line. */
static bool whole_dot_i8(int64_t q_rows, int64_t dim)
{
    return q_rows <= FEW_DOTS && dim > LINE && q_rows * dim <= 4 * VB;
}

STAGE(qk, k, dot_i8, float, FEW_DOTS, 1)
STAGE(qkt, k, dot_i8, float, FEW_DOTS, 1)
STAGE(pv_dot, v, i8, const float, FEW_DOTS, 1)
STAGE(pvq_dot, v, i8, const float, FEW_DOTS, 1)
#undef DTYPE
#undef ELEMENT
#undef PACK
#undef BIAS
#ifdef V_TURNED
#include "isa/dot/turned.tmpl.c"
#endif
#define QK_DOT_I8                                                                       \
    {                                                                                   \
        .half = {.most = Q_ROWS, .shared = QK_MOST, .step = VB, .whole = whole_dot_i8}, \
        .prepare_query = prepare_query_dot_i8,                                          \
        .rows = BY_CLASS(qk, dot_i8),                                                   \
        .transposed = BY_CLASS(qkt, dot_i8),                                            \
        .shared_transposed = BLOCK_SUMS,                                                \
    }
#define PV_DOT_I8                                                                          \
    {                                                                                      \
        .half = {.most = Q_ROWS, .shared = SLICE_SUMS, .step = VB, .whole = whole_dot_i8}, \
        .rows = BY_CLASS(pv_dot, i8),                                                      \
        .transposed = BY_CLASS(pvq_dot, i8),                                               \
        .shared_transposed = PV_MOST,                                                      \
    }
