/* One tier. Compiled once per instruction set, with that set's flags and KVB_VEC naming its vector header. */
#include <math.h>
#include <string.h>

#include "../core.h"
#include KVB_VEC

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#include "ahead.tmpl.c"
#include "softmax.tmpl.c"
#include "probe.tmpl.c"

#define DTYPE f32
#define ELEMENT 4
#define SCALED 0
#include "rows.tmpl.c"

#define DTYPE f16
#define ELEMENT 2
#define SCALED 0
#include "rows.tmpl.c"

#define DTYPE bf16
#define ELEMENT 2
#define SCALED 0
#include "rows.tmpl.c"

#define DTYPE i8
#define ELEMENT 1
#define SCALED 1
#include "rows.tmpl.c"

#include "round16.tmpl.c"

const kvb_tier TIER = {
    .rows = {[DTYPE_F32] = ROWS(f32), [DTYPE_F16] = ROWS(f16), [DTYPE_BF16] = ROWS(bf16), [DTYPE_I8] = ROWS(i8)},
    .peak = peak,
    .weigh = weigh,
    .rows[READ_ROUND16] = ROWS_ROUND16,
    .twin = twin,
    .read = probe_read,
    .write = probe_write,
    .write_nt = probe_write_nt,
    .copy = probe_copy,
    .copy_nt = probe_copy_nt,
    .triad = probe_triad,
    .flops = probe_flops,
    .qk_heads = QK_HEADS,
    .tile = {[DTYPE_F32] = TILE_FLOAT, [DTYPE_F16] = TILE_FLOAT, [DTYPE_BF16] = TILE_FLOAT, [DTYPE_I8] = TILE_BYTE},
};
