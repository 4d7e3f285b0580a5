/* Everything that depends on DTYPE. Included once per dtype by unit.c. */
#include "qk.tmpl.c"
#include "pv.tmpl.c"
#include "perhead.tmpl.c"
#include "encode.tmpl.c"

#undef DTYPE
#undef FOLD
#undef PAIRED
#undef ELEMENT
#undef SCALED

#ifndef ROWS
#define ROWS(dtype)                                                                                      \
    {                                                                                                    \
        .qk = {CAT(qk1_, dtype), CAT(qk2_, dtype), CAT(qk4_, dtype), CAT(qk8_, dtype)},                  \
        .pv = {CAT(pv1_, dtype), CAT(pv2_, dtype), CAT(pv4_, dtype), CAT(pv8_, dtype)},                  \
        .perhead = CAT(perhead_, dtype), .encode = CAT(encode_, dtype), .decode = CAT(decode_, dtype),   \
    }
#endif
