/* dot of i8 by products of 16-bit numbers: codes are widened as they are loaded, one instruction for 2 * VL of them. */

enum { V16 = 2 * VL }; /* numbers of a vector */

/* codes: [dim / V16][slots][V16] */
static void prepare_query_dot_i8(const kvb_group *group)
{
    int16_t *codes = (int16_t *)(void *)group->prepared->codes;
    for (int h = 0; h < group->slots; h++) {
        float inverse = dot_query_steps(group, h, 0, group->dim_pad, &group->prepared->step[h]);
        for (int64_t d = 0; d < round_up(group->dim, V16); d += VL)
            v_store_i16(codes + (d / V16 * group->slots + h) * V16 + d % V16, dot_query_at(group, h, d, inverse));
    }
}

#include "isa/dot/i16_qk.tmpl.c"
#include "isa/dot/i16_qk_t.tmpl.c"
#include "isa/dot/i16_pv.tmpl.c"

STAGE(qk, dot_i8, float, 0, 1)
STAGE(qkt, dot_i8, float, 0, 1)
STAGE(pv, dot_i8, const float, 0, 1)
#define ROWS_DOT_I8 DOT_ROWS(dot_i8, I16_BLOCK_SUMS, PV_HEADS, NULL)
