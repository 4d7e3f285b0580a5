/* Both halves of a way to read rows, and its codec: everything that depends on DTYPE. Included once
 * per way by unit.c. */
#ifndef PACK
#define PACK 1
#endif
#ifndef PLAIN
#define PLAIN 0
#endif
#ifndef SCALED
#define SCALED 0
#endif
#ifdef FLOAT8
#include "isa/row/float8.tmpl.c"
#else
#define FOLD 1.0f
#endif

#include "isa/row/load.tmpl.c"
#include "isa/row/decode.tmpl.c"
#include "isa/qk/qk.tmpl.c"
#include "isa/pv/pv.tmpl.c"
#ifndef LOADED_ONLY /* nothing is stored so */
#if PACK == 1
#include "isa/row/encode.tmpl.c"
#else
#include "isa/row/encode_packed.tmpl.c"
#endif
#include "isa/perhead.tmpl.c"
#endif

/* As all its stages have it. */
static bool CAT(whole_, DTYPE)(int64_t q_rows, int64_t dim)
{
    (void)dim;
    return PACK == 1 && q_rows <= WHOLE_MOST;
}

/* Two query rows of formats that are converted could take rows in turn, but were slower so: their
 * sums go in and out for few bytes. */
#if PACK > 1
enum { CAT(in_turn_, DTYPE) = 0 };
#elif ELEMENT < 4
enum { CAT(in_turn_, DTYPE) = 1 };
#else
enum { CAT(in_turn_, DTYPE) = WHOLE_MOST };
#endif

#undef DTYPE
#undef ELEMENT
#undef PACK
#undef PLAIN
#undef SCALED
#undef FORMAT
#undef FOLD
#undef LOADED_ONLY

#ifndef QK_OF
/* The halves of a way to read rows, as tiers have them. */
#define HALF_OF(way, q_rows)    \
    {.most = Q_ROWS,            \
     .shared = q_rows,          \
     .step = VL,                \
     .whole = CAT(whole_, way), \
     .in_turn = CAT(in_turn_, way)}
#define QK_OF(way) \
    {.half = HALF_OF(way, QK_MOST), .rows = BY_CLASS(qk, way), .shared_transposed = QK_MOST}
#define PV_OF(way) {.half = HALF_OF(way, PV_MOST), .rows = BY_CLASS(pv, way)}
#endif
