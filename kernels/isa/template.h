/* The macros that several templates (*.tmpl.c) use.
 *
 * Templates are compiled once for each way to read rows: a dtype as it is, or another way. These
 * macros describe a way:
 *
 *   DTYPE    its word, the end of each function's name
 *   ELEMENT  bytes of PACK elements
 *   PACK     elements of a row that share a scale: 32; or 1 (the default), no packs
 *   PLAIN    1: elements are float32
 *   SCALED   1: each row has a scale beside it
 *   FLOAT8   1: elements are 8-bit floats, and FOLD follows from their line in base/dtypes.h
 *   FOLD     a power of two: vectors are loaded FOLD times too small, and sums are multiplied by
 *            FOLD at their end */
#ifndef KVB_ISA_TEMPLATE_H
#define KVB_ISA_TEMPLATE_H

/* Never inlined, nor copied for constant arguments. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define UNROLL_FOR UNROLL_UP_TO(16) for
/* The index i of an array of `count` registers. If count is 1, Clang sees too late that i is 0. */
#define INDEX(i, count) ((count) > 1 ? (i) : 0)
/* Read an array again from memory: else compilers extract the lanes of stored vectors one by one.
 */
#define KEEP_IN_MEMORY(array) __asm__("" : "+m"(array))
/* Compute again what depends on a variable: else compilers keep all of it in registers that an
 * inner loop needs. */
#define HIDE(variable) __asm__("" : "+r"(variable))
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* dtype_<word>: the enumerator of a dtype, from its word. */
#define DTYPE_NUMBER(word, name, ...) dtype_##word = DTYPE_##name,
enum { KVB_DTYPES(DTYPE_NUMBER) };

/* Elements of one query row stored side by side in a group's q, if four query rows share a vector
 * (V_FOURS, groups of eight). */
enum { SHARE = 4 };
#ifdef V_FOURS
#define Q_PART(slots) ((slots) == Q_ROWS ? SHARE : LANES)
#else
#define Q_PART(slots) LANES
#endif

/* The usual dim. It is a constant in some loops, so that q stays in registers. */
enum { USUAL = 128 };

/* The factors of the accumulators before the later rows of a tile. */
static const float ones[Q_ROWS] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};

/* *acc += a * b. `once`: b is used only here, so it may be multiplied from memory. Fewer
 * instructions for a line let a core look more lines ahead. */
INLINE void fma_of(vf *acc, vf a, vf b, const bool once)
{
    if (once)
        *acc = v_fma(a, b, *acc);
    else
        v_fma_into(acc, a, b);
}

/* ---- rows of DTYPE: row/load.tmpl.c ---------------------------------------------------------- */

/* Elements from one prefetch to the next: those of a line; of packed rows two packs, which are a
 * line or less. Then their vectors. */
#define SPAN (PACK == 1 ? LINE / ELEMENT : 2 * PACK)
#define STEPS (SPAN / VL)
/* Byte offset in a row of element `at`, or of its pack. */
#define OFFSET(at) (PACK == 1 ? (at) * ELEMENT : (int)((unsigned)(at) / PACK) * ELEMENT)
/* Whether two vectors of a row are converted at once (PAIRED), and dealt (row/deal.tmpl.c). 0 if a
 * tier defines nothing. For 8-bit floats, a tier defines the exceptions (V_SINGLE_x). */
#define PAIRED (FLOAT8 ? V_PAIR_FLOAT8 && !CAT(V_SINGLE_, DTYPE) : CAT(V_PAIR_, DTYPE))
#define DEALT CAT(V_DEAL_, DTYPE)
#define LOAD CAT(load_, DTYPE)
#define CODES CAT(codes_, DTYPE)
#define VALUES CAT(values_, DTYPE)
/* A prefetch cursor over rows of `dim` elements. */
#define PREFETCH(side, dim) prefetch_by(side, ((dim) + SPAN - 1) / SPAN, SPAN / PACK * ELEMENT)

/* ---- stages: qk pv --------------------------------------------------------------------------- */

/* The most query rows for which rows of DTYPE are read whole: 2 (FEW_Q_ROWS), or 4 for float32 if a
 * vector is a line. */
#define WHOLE_MOST (PLAIN && VL == 16 ? 4 : 2)

/* Define <stage><q_rows>_<DTYPE> as a function that is not inlined: inlined, it would take
 * registers from the stages that call it. */
#define OUT_OF_LINE(stage, q_rows, floats)                                                    \
    static NOINLINE void CAT(stage##q_rows##_, DTYPE)(const kvb_tile *tile,                   \
                                                      const kvb_group *group, floats *scores) \
    {                                                                                         \
        CAT(stage##_of_, DTYPE)(tile, group, scores, q_rows);                                 \
    }

#endif
