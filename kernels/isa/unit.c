/* One tier. Compiled once per instruction set, with that set's flags and KVB_VEC naming its vector
 * header. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tier/tier.h"
#include "tier/dot.h"
#include KVB_VEC

#include "isa/template.h"

#define GATHER_LINE(to, from) v_stream(to, from)
#include "tier/gather.h"

#include "isa/prefetch.tmpl.c"
#include "isa/softmax.tmpl.c"
#include "isa/twin.tmpl.c"
#include "isa/probe.tmpl.c"

#define DTYPE f32
#define ELEMENT 4
#define PLAIN 1
#include "isa/row/row_kernel.tmpl.c"

#define DTYPE f16
#define ELEMENT 2
#include "isa/row/row_kernel.tmpl.c"

#define DTYPE bf16
#define ELEMENT 2
#include "isa/row/row_kernel.tmpl.c"

#define DTYPE i8
#define ELEMENT 1
#define SCALED 1
#include "isa/row/row_kernel.tmpl.c"

#define DTYPE e4m3
#define ELEMENT 1
#define FOLD 256.0f
#include "isa/row/row_kernel.tmpl.c"

#define DTYPE e5m2
#define ELEMENT 1
#include "isa/row/row_kernel.tmpl.c"

#include "isa/row/packs.tmpl.c"

#define DTYPE q8_0
#define ELEMENT 34
#define PACK 32
#include "isa/row/row_kernel.tmpl.c"

#define DTYPE q4_0
#define ELEMENT 18
#define PACK 32
#include "isa/row/row_kernel.tmpl.c"

#include "isa/row/round16.tmpl.c"
#include "isa/qk/transposed.tmpl.c"
#include "isa/dot/dot.tmpl.c"

#define ROWS_OF(dtype, name, ...) [DTYPE_##name] = ROW_KERNEL(dtype),

const kvb_tier TIER = {
    .rows = {KVB_DTYPES(ROWS_OF)},
    .rows[READ_ROUND16] = {STAGES(round16)},
    .rows[DTYPE_F32].qk_t = CLASSES(qkt, f32),
    .rows[DTYPE_F16].qk_t = CLASSES(qkt, f16),
    .rows[DTYPE_BF16].qk_t = CLASSES(qkt, bf16),
#if V_DEAL_bf16
    .rows[DTYPE_BF16].prepare_query = deal_query_bf16,
#endif
    .rows[DTYPE_I8].qk_t = CLASSES(qkt, i8),
    .rows[READ_DOT_I8] = ROWS_DOT_I8,
    KVB_DOT_PACKS(ROWS_DOT_PACKED).max = softmax_max,
    .exp = softmax_exp,
    .twin = twin,
    .read = probe_read,
    .write = probe_write,
    .write_nt = probe_write_nt,
    .copy = probe_copy,
    .copy_nt = probe_copy_nt,
    .triad = probe_triad,
    .flops = probe_flops,
    .dot8 = probe_dot8,
    .q_part = Q_PART(HEADS),
};
