/* Both halves of a way to read rows, and its codec: all that depends on DTYPE. unit.c includes this
 * once for each way. */
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
#ifndef LOADED_ONLY /* a way that cannot store */
#if PACK == 1
#include "isa/row/encode.tmpl.c"
#else
#include "isa/row/encode_packed.tmpl.c"
#endif
#include "isa/perhead.tmpl.c"
#endif

/* Whether all stages read rows whole for `q_rows` query rows. */
static bool CAT(whole_, DTYPE)(int64_t q_rows, int64_t dim)
{
    (void)dim;
    return PACK == 1 && q_rows <= WHOLE_MOST;
}

/* Formats that must be converted could read rows in turn for two query rows, too, but that was
 * slower: their sums are loaded and stored for few bytes. */
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
/* The halves of a way, for the table of a tier. */
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
