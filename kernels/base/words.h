/* The words of words.c as enums, in the same order; limits; arithmetic of whole numbers. */
#ifndef KVB_WORDS_H
#define KVB_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtypes.h"
#include "base/presets.h"
#include "kvbench.h"

enum {
    OP_DECODE,
    OP_TWIN,
    OP_APPEND,
    OP_BULK,
    OP_CLEAR,
    OP_UNPACK,
    OP_FILL,
    OP_REPACK,
    OP_TRANSPOSE,
    OP_LOGITS,
    OP_RESET,
    OP_READ,
    OP_WRITE,
    OP_WRITE_NT,
    OP_COPY,
    OP_COPY_NT,
    OP_TRIAD,
    OP_FLOPS,
    OP_DOT8,
    OP_DOT16,
    OP_LATENCY,
    OP_CLOCK,
    OPS
};
enum { VARIANT_FLASH, VARIANT_TWOPASS, VARIANT_PERHEAD, VARIANT_ROUND16, VARIANT_DOT, VARIANTS };
enum { LAYOUT_HEAD, LAYOUT_POSITION, LAYOUT_PAGED, LAYOUT_BLOCKT, LAYOUT_BLOCK16, LAYOUTS };
enum { INNER_HEAD, INNER_TOKEN, INNERS };
#define KVB_DTYPE(word, name, ...) DTYPE_##name,
enum { KVB_DTYPES(KVB_DTYPE) DTYPES };
#undef KVB_DTYPE
enum { SCALE_F32, SCALE_F16, SCALES };
enum { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_NEON, ISA_SVE256, ISA_SVE512, ISAS };
enum { PAGES_BASE, PAGES_THP, PAGES_HUGE, PAGES };

/* LINE: bytes of a cache line. TILE: most tokens of a tile. Q_ROWS: most query rows in a call of a
 * stage. LANES: tokens of a transposed block; tiles are padded to a multiple of it. DIM_MAX:
 * most elements of a row. */
enum { LINE = 64, TILE = 1024, Q_ROWS = 8, LANES = 16, DIM_MAX = 1024 };

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
/* One step of splitmix64: every bit of the result depends on all bits of x. */
static inline uint64_t kvb_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Inline a function whatever its size, so that constant arguments are constants inside it. With
 * KVB_SANITIZED the function stays a function: copies of its checks at every call would make the
 * build six times as slow. */
#ifdef KVB_SANITIZED
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif
/* Unroll a loop fully, up to `most` iterations, so that arrays become registers. Clang accepts the
 * pragma of gcc, but ignores it. */
#define KVB_PRAGMA(words) _Pragma(#words)
#ifdef KVB_SANITIZED
#define UNROLL_UP_TO(most)
#define UNROLL_NOTHING
#elif defined(__clang__)
#define UNROLL_UP_TO(most) KVB_PRAGMA(clang loop unroll(full))
#define UNROLL_NOTHING KVB_PRAGMA(clang loop unroll(disable))
#else
#define UNROLL_UP_TO(most) KVB_PRAGMA(GCC unroll most)
#define UNROLL_NOTHING KVB_PRAGMA(GCC unroll 1)
#endif

#endif
