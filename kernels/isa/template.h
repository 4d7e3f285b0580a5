/* The words that templates (*.tmpl.c) are written in: all macros that several of them use stand
 * here.
 *
 * Templates are compiled once for each way to read rows: a dtype as it is, or another. One is
 * said by
 *
 *   DTYPE    its word, the end of each function's name
 *   ELEMENT  bytes that hold PACK elements
 *   PACK     elements that share a scale in a row, 32; or 1 (as where nothing is said), and
 *            elements follow each other
 *   PLAIN    1: elements are floats as they stand
 *   SCALED   1: a row has a scale beside it
 *   FLOAT8   1: elements are floats of 8 bits, and FOLD follows from their line
 *   FOLD     a power of two: vectors are loaded that much smaller than their values, and sums
 *            are multiplied at their end */
#ifndef KVB_ISA_TEMPLATE_H
#define KVB_ISA_TEMPLATE_H

/* Not even in copies for some of its arguments. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define UNROLL_FOR UNROLL_UP_TO(16) for
/* Of a loop of so many, as an index of registers: Clang sees too late that the only one's is 0. */
#define INDEX(i, count) ((count) > 1 ? (i) : 0)
/* What was stored is read again from memory: compilers would rather take a vector apart, lane by
 * lane. */
#define KEEP_IN_MEMORY(array) __asm__("" : "+m"(array))
/* What follows from it is computed anew: compilers would rather keep all of that in registers that
 * an inner loop wants. */
#define HIDE(variable) __asm__("" : "+r"(variable))
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* dtype_<word>: the number of a dtype, from its word. */
#define DTYPE_NUMBER(word, name, ...) dtype_##word = DTYPE_##name,
enum { KVB_DTYPES(DTYPE_NUMBER) };

/* Elements of a query row that lie side by side in a group's q: of eight, where four share a
 * vector, a fourth of it. */
enum { SHARE = 4 };
#ifdef V_FOURS
#define Q_PART(slots) ((slots) == Q_ROWS ? SHARE : LANES)
#else
#define Q_PART(slots) LANES
#endif

/* A dim that is a constant where it matters: so many of q stay in registers. */
enum { USUAL = 128 };

/* What sums are rescaled by in front of a tile's later rows. */
static const float ones[Q_ROWS] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};

/* *acc += a * b. What is used once need not be kept, and may be multiplied from memory: the fewer
 * instructions to a line, the more lines a core looks ahead. */
INLINE void fma_of(vf *acc, vf a, vf b, const bool once)
{
    if (once)
        *acc = v_fma(a, b, *acc);
    else
        v_fma_into(acc, a, b);
}

/* ---- rows of DTYPE: row/load.tmpl.c ---------------------------------------------------------- */

/* Elements from one prefetch to the next: a line of them, or about as much or less in two packs;
 * and their vectors. */
#define SPAN (PACK == 1 ? LINE / ELEMENT : 2 * PACK)
#define STEPS (SPAN / VL)
/* Byte of a row at which element `at` lies, or the pack that it is in. */
#define OFFSET(at) (PACK == 1 ? (at) * ELEMENT : (int)((unsigned)(at) / PACK) * ELEMENT)
/* Two vectors of a row are converted at once; and dealt: row/deal.tmpl.c. 0 where a tier does not
 * say. Of floats of 8 bits, a tier says which are not. */
#define PAIRED (FLOAT8 ? V_PAIR_FLOAT8 && !CAT(V_SINGLE_, DTYPE) : CAT(V_PAIR_, DTYPE))
#define DEALT CAT(V_DEAL_, DTYPE)
#define LOAD CAT(load_, DTYPE)
#define CODES CAT(codes_, DTYPE)
#define VALUES CAT(values_, DTYPE)
/* A cursor over rows of `dim` elements. */
#define PREFETCH(side, dim) prefetch_by(side, ((dim) + SPAN - 1) / SPAN, SPAN / PACK * ELEMENT)

/* ---- stages: qk pv --------------------------------------------------------------------------- */

/* The most query rows that take rows of DTYPE whole: FEW_Q_ROWS, or four where its elements are
 * floats as they stand and a line is a vector. */
#define WHOLE_MOST (PLAIN && VL == 16 ? 4 : 2)

/* <stage><q_rows>_<DTYPE>, out of line of the stages that call it: those would lose registers to
 * what they do not use. */
#define OUT_OF_LINE(stage, q_rows, floats)                                                    \
    static NOINLINE void CAT(stage##q_rows##_, DTYPE)(const kvb_tile *tile,                   \
                                                      const kvb_group *group, floats *scores) \
    {                                                                                         \
        CAT(stage##_of_, DTYPE)(tile, group, scores, q_rows);                                 \
    }

#endif
