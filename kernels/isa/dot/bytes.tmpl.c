/* dot8, and where there is DOT_SPLIT dot16, by products of bytes: four neighbours to a lane. One factor has no sign
 * where DOT_K_BIAS or DOT_V_BIAS is 128: codes are then taken with 128 added, and the sums begin that much lower. */

enum { VB = 4 * VL }; /* bytes of a vector */

/* A vector of q: VB codes of a head; or where V_SHARED, of all heads as many of each. A head's lie side by side. */
#ifdef V_SHARED
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
INLINE void prepare_bytes(const kvb_group *group, int32_t row_kernel, const int parts)
{
    kvb_prepared *prepared = group->prepared;
    const int64_t dim = round_up(group->dim, VB), part = group->slots * dim;
    for (int h = 0; h < group->slots; h++) {
        float inverse = dot_query_steps(group, h, row_kernel, &prepared->step[h]);
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
                    memcpy(prepared->codes + i * part + dot_code(group->slots, h, d + at), bytes[i] + at, PART);
        }
        prepared->first[h] = (int32_t)(-DOT_K_BIAS * v_hsum(total));
    }
}

#include "isa/dot/bytes_qk_t.tmpl.c"
#ifdef V_SHARED
#include "isa/dot/bytes_qk_shared.tmpl.c"
#endif
#include "isa/dot/bytes_qk.tmpl.c"
#include "isa/dot/bytes_pv.tmpl.c"

/* Rows one after another: where registers hold the sums of all of D, and a row is more than a line. */
INLINE bool whole_bytes(int64_t heads, int64_t dim, const int parts)
{
    return parts == 1 && heads <= FEW_DOTS && dim > LINE && heads * dim <= 4 * VB;
}

#define DTYPE dot8
#define PARTS 1
#include "isa/dot/bytes_kernel.tmpl.c"
#define ROWS_DOT8 DOT_ROWS(dot8, BLOCK_SUMS, SLICE_SUMS, whole_dot8)
#ifdef DOT_SPLIT
#define DTYPE dot16
#define PARTS 2
#include "isa/dot/bytes_kernel.tmpl.c"
#define ROWS_DOT16 DOT_ROWS(dot16, BLOCK_SUMS / 2, SLICE_SUMS / 2, whole_dot16)
#endif
