/* Everything that depends on DTYPE. Included once per dtype by unit.c. */
#include "isa/qk/qk.tmpl.c"
#include "isa/pv/pv.tmpl.c"
#include "isa/perhead.tmpl.c"
#include "isa/encode.tmpl.c"

/* Two query heads of formats that are converted could take rows in turn, but were slower so: their sums go in and out for few
 * bytes. */
enum { CAT(in_turn_, DTYPE) = PLAIN ? ROW_HEADS : BLOCK == 1 };

#undef DTYPE
#undef FOLD
#undef PLAIN
#undef ELEMENT
#undef SCALED

#ifndef ROWS
#define ROWS(dtype)                                                                                      \
    {                                                                                                    \
        .qk = CLASSES(qk, dtype), .pv = CLASSES(pv, dtype), .perhead = CAT(perhead_, dtype),             \
        .encode = CAT(encode_, dtype), .decode = CAT(decode_, dtype),                                    \
        .qk_heads = QK_HEADS, .qk_t_heads = QK_HEADS, .pv_heads = PV_HEADS,                              \
        .whole = CAT(whole_, dtype), .in_turn = CAT(in_turn_, dtype),                                    \
    }
#endif
