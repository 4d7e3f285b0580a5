/* One tier. Compiled once per instruction set, with that set's flags and KVB_VEC naming its vector header. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tier/tier.h"
#include "tier/dot.h"
#include KVB_VEC

#define INLINE static inline __attribute__((always_inline))
#define UNROLL UNROLL_UP_TO(16)
/* The turn of a loop of so many, as an index of registers: Clang sees too late that the only turn's is 0. */
#define TURN(i, turns) ((turns) > 1 ? (i) : 0)
/* What was stored is read again from memory: compilers would rather take a vector apart, lane by lane. */
#define KEEP_IN_MEMORY(array) __asm__("" : "+m"(array))
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* Elements of a head that lie side by side in a group's q: of eight, where four share a vector, a fourth of it. */
enum { SHARE = 4 };
#ifdef V_FOURS
#define Q_PART(slots) ((slots) == HEADS ? SHARE : LANES)
#else
#define Q_PART(slots) LANES
#endif

/* A dim that is a constant where it matters: so many of q stay in registers. */
enum { USUAL = 128 };

/* What sums are rescaled by in front of a tile's later rows. */
static const float ones[HEADS] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};

#define GATHER_LINE(to, from) v_stream(to, from)
#include "tier/gather.h"

#include "isa/loads.tmpl.c"
#include "isa/prefetch.tmpl.c"
#include "isa/softmax.tmpl.c"
#include "isa/probe.tmpl.c"
#include "isa/scales.tmpl.c"

#define BLOCK 1

#define DTYPE f32
#define ELEMENT 4
#define SCALED 0
#define PLAIN 1
#include "isa/rows.tmpl.c"

#define DTYPE f16
#define ELEMENT 2
#define SCALED 0
#include "isa/rows.tmpl.c"

#define DTYPE bf16
#define ELEMENT 2
#define SCALED 0
#include "isa/rows.tmpl.c"

#define DTYPE i8
#define ELEMENT 1
#define SCALED 1
#include "isa/rows.tmpl.c"

#define DTYPE e4m3
#define ELEMENT 1
#define SCALED 0
#define FOLD 256.0f
#include "isa/rows.tmpl.c"

#define DTYPE e5m2
#define ELEMENT 1
#define SCALED 0
#include "isa/rows.tmpl.c"

#undef BLOCK
#define BLOCK 32
#include "isa/blocks.tmpl.c"

#define DTYPE q8_0
#define ELEMENT 34
#define SCALED 0
#include "isa/rows.tmpl.c"

#define DTYPE q4_0
#define ELEMENT 18
#define SCALED 0
#include "isa/rows.tmpl.c"

#undef BLOCK
#define BLOCK 1

#include "isa/round16.tmpl.c"
#include "isa/qk/transposed.tmpl.c"
#include "isa/dot/dot.tmpl.c"

#define ROWS_OF(dtype, name, ...) [DTYPE_##name] = ROWS(dtype),

const kvb_tier TIER = {
    .rows = {KVB_DTYPES(ROWS_OF)},
    .rows[READ_ROUND16] = ROWS_ROUND16,
    .rows[DTYPE_F32].qk_t = CLASSES(qkt, f32),
    .rows[DTYPE_F16].qk_t = CLASSES(qkt, f16),
    .rows[DTYPE_BF16].qk_t = CLASSES(qkt, bf16),
#if V_DEAL_bf16
    .rows[DTYPE_BF16].take = deal_bf16,
#endif
    .rows[DTYPE_I8].qk_t = CLASSES(qkt, i8),
#ifdef ROWS_DOT8
    .rows[READ_DOT8] = ROWS_DOT8,
#endif
#ifdef ROWS_DOT16
    .rows[READ_DOT16] = ROWS_DOT16,
#endif
    .peak = peak,
    .weigh = weigh,
    .twin = twin,
    .read = probe_read,
    .write = probe_write,
    .write_nt = probe_write_nt,
    .copy = probe_copy,
    .copy_nt = probe_copy_nt,
    .triad = probe_triad,
    .flops = probe_flops,
    .q_part = Q_PART(HEADS),
};
