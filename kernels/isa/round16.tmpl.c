/* f32 rows whose elements pass through f16 as they are loaded. Nothing is stored in this way, and only flash reads so. */

/* Compilers keep the halves in a register. */
static inline vf v_load_round16(const uint8_t *p)
{
    uint8_t halves[2 * VL];
    v_store_f16(halves, v_load_f32(p));
    return v_load_f16(halves);
}

#define DTYPE round16
#define ELEMENT 4
#define SCALED 0
#include "isa/qk/qk.tmpl.c"
#include "isa/pv/pv.tmpl.c"
#undef DTYPE
#undef ELEMENT
#undef SCALED
#undef PLAIN

/* A row of a group of many heads: rounded once, for all of them. */
static void decode_round16(const uint8_t *row, float scale, int64_t dim, float *to)
{
    (void)scale;
    int64_t at = 0;
    for (; at + VL <= dim; at += VL)
        v_store(to + at, v_load_round16(row + at * 4));
    if (at < dim)
        v_store_n(to + at, v_load_round16(row + at * 4), (int)(dim - at));
}

#define ROWS_ROUND16                                                                              \
    {                                                                                             \
        .qk = CLASSES(qk, round16), .pv = CLASSES(pv, round16), .decode = decode_round16,         \
        .qk_heads = QK_HEADS, .pv_heads = PV_HEADS, .whole = whole_round16, .in_turn = FEW_HEADS, \
    }
