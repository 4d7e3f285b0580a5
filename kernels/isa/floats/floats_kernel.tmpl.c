/* Both halves of dot for DTYPE, with elements of ELEMENT bytes. */

static void CAT(prepare_query_floats_, DTYPE)(const kvb_group *group)
{
    floats_query(group, WORDS);
}

#if ELEMENT == 1
INLINE vcodes CAT(codes_of_, DTYPE)(void)
{
    return v_load_codes(kvb_code_bytes[CAT(dtype_, DTYPE)]);
}
#else
INLINE vcodes CAT(codes_of_, DTYPE)(void) { return (vcodes){0}; } /* is never read */
#endif

#include "isa/floats/floats_qk.tmpl.c"
#include "isa/floats/floats_pv.tmpl.c"
#if ELEMENT == 1
#include "isa/blocks/floats_cells.tmpl.c"
#include "isa/blocks/floats_quads.tmpl.c"
#else
#include "isa/floats/floats_qk_t.tmpl.c"
#endif

#if defined V_TURNED && ELEMENT == 1
#include "isa/floats/floats_turned.tmpl.c"
#endif

/* Read rows whole if all of D is one slice. */
static bool CAT(whole_floats_, DTYPE)(int64_t q_rows, int64_t dim)
{
    const int64_t blocks = (dim + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    return LINE / VB == 1 && q_rows <= FLOATS_WHOLE && blocks <= FLOATS_PARTS / BLOCK &&
           blocks != 3;
}

enum {
    CAT(floats_piece_, DTYPE) = PIECE,
    /* most query rows that share a load of a row in PV, whose slice is a block at least */
    CAT(floats_shared_, DTYPE) = PV_ACC / (2 * BLOCK) < PV_MOST ? PV_ACC / (2 * BLOCK) : PV_MOST
};

STAGE(qk_floats, k, DTYPE, float, FLOATS_WHOLE, 1)
STAGE(pv_floats, v, DTYPE, const float, FLOATS_WHOLE, 1)
STAGE(qkt_floats, k, DTYPE, float, FLOATS_WHOLE, 1)
#if ELEMENT == 1
STAGE(pvt_floats, v, DTYPE, const float, FLOATS_WHOLE, 1)
#endif

#undef BLOCK
#undef BLOCK_ELEMENTS
#undef DTYPE
#undef ELEMENT
