/* A tier. This file is compiled once per instruction set, with that set's flags; KVB_VEC names its
 * vector header. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tier/tier.h"
#include "tier/dot.h"
#include KVB_VEC

#include "isa/stages.h"

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

#define EACH "isa/row/row_kernel.tmpl.c"
#include "isa/row/floats8.tmpl.c"

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

#define QK_ROW(dtype, name, ...) [DTYPE_##name] = QK_OF(dtype),
#define PV_ROW(dtype, name, ...) [DTYPE_##name] = PV_OF(dtype),
#define CODEC_ROW(dtype, name, ...) [DTYPE_##name] = {CAT(encode_, dtype), CAT(decode_, dtype)},
#define PERHEAD_ROW(dtype, name, ...) [DTYPE_##name] = CAT(perhead_, dtype),

#ifdef KVB_VNNI
/* The table of avx2 for CPUs with AVX-VNNI: only the functions that use it. */
const kvb_tier kvb_tier_avx2_vnni = {
    .qk[WAY_DOT_I8] = QK_DOT_I8,
    KVB_DOT_PACKS(QK_DOT_PACKED).pv[WAY_DOT_I8] = PV_DOT_I8,
    KVB_DOT_PACKS(PV_DOT_PACKED).compute[OP_DOT8] = probe_dot8,
};
#else
const kvb_tier TIER = {
    .qk = {KVB_DTYPES(QK_ROW)},
    .qk[DTYPE_F32].transposed = BY_CLASS(qkt, f32),
    .qk[DTYPE_F16].transposed = BY_CLASS(qkt, f16),
    .qk[DTYPE_BF16].transposed = BY_CLASS(qkt, bf16),
#if V_DEAL_bf16
    .qk[DTYPE_BF16].prepare_query = deal_query_bf16,
#endif
    .qk[DTYPE_I8].transposed = BY_CLASS(qkt, i8),
    .qk[WAY_ROUND16] = QK_OF(round16),
    .qk[WAY_DOT_I8] = QK_DOT_I8,
    KVB_DOT_PACKS(QK_DOT_PACKED).pv = {KVB_DTYPES(PV_ROW)},
#ifdef V_DOT_FLOATS
    KVB_DOT_FLOATS(QK_FLOATS) KVB_DOT_FLOATS(PV_DOT_FLOATS) KVB_FLOATS8(PV_DOT_QUADS)
#endif
        .pv[WAY_ROUND16] = PV_OF(round16),
    .pv[WAY_DOT_I8] = PV_DOT_I8,
    KVB_DOT_PACKS(PV_DOT_PACKED).codecs = {KVB_DTYPES(CODEC_ROW)},
    .codecs[WAY_ROUND16].decode = decode_round16,
    .perhead = {KVB_DTYPES(PERHEAD_ROW)},
    .max = softmax_max,
    .exp = softmax_exp,
    .twin = twin,
    .read = probe_read,
    .write = probe_write,
    .write_nt = probe_write_nt,
    .copy = probe_copy,
    .copy_nt = probe_copy_nt,
    .triad = probe_triad,
    .compute[OP_FLOPS] = probe_flops,
    .compute[OP_DOT8] = probe_dot8,
#ifdef V_TURNED
    KVB_FLOATS8(QK_TURNED).qk[WAY_DOT_I8].turn = turn_k_i8,
    .qk[WAY_DOT_I8].turned = BY_CLASS(qk_turned, i8),
    .pv[WAY_DOT_I8].turn = turn_v_i8,
    .pv[WAY_DOT_I8].weigh = weigh_i8,
    .pv[WAY_DOT_I8].turned = BY_CLASS(pv_turned, i8),
#endif
#ifdef V_DOT_FLOATS
    .compute[OP_DOT16] = probe_dot16,
#endif
    .q_part = Q_PART(Q_ROWS),
};
#endif
