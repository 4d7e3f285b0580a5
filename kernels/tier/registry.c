/* The list of kernels: each op, with every variant, layout, dtype and tier of this build. */
#include <pthread.h>
#include <stdio.h>

#include "tier/tier.h"

const kvb_tier *kvb_tier_of(int32_t isa)
{
    static const kvb_tier *const tiers[ISAS] = {
        [ISA_SCALAR] = &kvb_tier_scalar,
#ifdef KVB_HAVE_AVX2
        [ISA_AVX2] = &kvb_tier_avx2,
#endif
#ifdef KVB_HAVE_AVX512
        [ISA_AVX512] = &kvb_tier_avx512,
#endif
#ifdef KVB_HAVE_NEON
        [ISA_NEON] = &kvb_tier_neon,
#endif
#ifdef KVB_HAVE_SVE256
        [ISA_SVE256] = &kvb_tier_sve256,
#endif
#ifdef KVB_HAVE_SVE512
        [ISA_SVE512] = &kvb_tier_sve512,
#endif
    };
    return isa >= 0 && isa < ISAS ? tiers[isa] : NULL;
}

const kvb_tier *kvb_tier_with(int32_t isa, int32_t way)
{
#ifdef KVB_HAVE_AVX2_VNNI
    if (isa == ISA_AVX2 && way >= WAY_DOT_I8 && way < WAY_DOT_FLOATS && kvb_has_more(isa))
        return &kvb_tier_avx2_vnni;
#endif
    (void)way;
    return kvb_tier_of(isa);
}

int32_t kvb_check_isa(int32_t isa)
{
    TRY(kvb_check_word("isa", isa, ISAS));
    if (!kvb_tier_of(isa))
        return kvb_fail(KVB_UNSUPPORTED, "isa %s is not part of this build", kvb_word("isa", isa));
    if (!kvb_isa_runs(isa))
        return kvb_fail(KVB_UNSUPPORTED, "isa %s does not run on this CPU", kvb_word("isa", isa));
    return KVB_OK;
}

/* The words that an op is combined with. If an axis is false, the kernel's word is "-". */
typedef struct op_row {
    int32_t op;
    const char *variant; /* null: every variant of the list */
    bool layouts, dtypes, isas;
    const char *about;
} op_row;

static const op_row rows[] = {
    {OP_DECODE, NULL, true, true, true, NULL},
    {OP_TWIN, "-", true, true, true,
     "pure read of the rows that decode reads: same threads, same order"},
    {OP_FILL, "-", true, true, true,
     "pseudo-random rows, first touched by the thread that reads them"},
    {OP_APPEND, "-", true, true, true, "one token for every sequence and KV head"},
    {OP_BULK, "plain", true, true, true, "prompt tokens, ordinary stores"},
    {OP_BULK, "nt", true, true, true, "prompt tokens, non-temporal stores"},
    {OP_UNPACK, "-", true, true, true, "rows back to float32"},
    {OP_CLEAR, "-", true, false, true, "zero every byte"},
    {OP_RESET, "-", true, false, false, "length to zero, bytes stay"},
    {OP_REPACK, "-", true, true, true, "grow a cache whose heads are whole stretches in place"},
    {OP_TRANSPOSE, "-", false, false, true, "token-major to head-major float32, and back"},
    {OP_LOGITS, "-", false, false, true, "copy one row to a position"},
    {OP_READ, "-", false, false, true, "plain or prefetching read of a buffer"},
    {OP_WRITE, "-", false, false, true, "fill a buffer, ordinary stores"},
    {OP_WRITE_NT, "-", false, false, true, "fill a buffer, non-temporal stores"},
    {OP_COPY, "-", false, false, true, "copy a buffer, ordinary stores"},
    {OP_COPY_NT, "-", false, false, true, "copy a buffer, non-temporal stores"},
    {OP_TRIAD, "-", false, false, true, "a = b + s * c, ordinary stores"},
    {OP_FLOPS, "-", false, true, true, "fused multiply-adds that stay in registers"},
    {OP_DOT8, "-", false, false, true, "products of bytes that stay in registers"},
    {OP_DOT16, "-", false, false, true, "products of bf16 that stay in registers"},
    {OP_LATENCY, "-", false, false, false, "pointer chase through a random cycle of lines"},
    {OP_CLOCK, "-", false, false, false, "dependent additions: one per cycle of the core"},
};

static const char *const decode_about[VARIANTS] = {
    [VARIANT_FLASH] = "one pass over K and V for the whole group of query heads",
    [VARIANT_TWOPASS] = "all scores, then softmax, then the weighted sum of V",
    [VARIANT_PERHEAD] = "every query head walks K and V by itself, token by token",
    [VARIANT_ROUND16] = "flash whose K and V are rounded to f16 as they are loaded",
    [VARIANT_DOT] =
        "flash that multiplies codes as whole numbers, and bf16 and 8-bit floats as bf16",
};

enum { MOST = (sizeof rows / sizeof *rows + VARIANTS) * LAYOUTS * DTYPES * ISAS };
static kvb_kernel kernels[MOST];
static int32_t count;

/* Whether a tier has what an op needs: the function that computes, or both halves. */
static bool has(int32_t isa, int32_t op, int32_t way)
{
    if (kvb_computes(op))
        return kvb_tier_of(isa) && kvb_tier_of(isa)->compute[op];
    return kvb_has_half(isa, way, KVB_K) && kvb_has_half(isa, way, KVB_V);
}

/* List the kernels of an op and one variant: every layout, dtype and tier that has it, with K and V
 * of one dtype. `index`: the variant's index if the op is decode, else -1. */
static void add(const op_row *row, int32_t index, const char *variant, const char *about)
{
    const int32_t layouts = row->layouts ? LAYOUTS : 1, isas = row->isas ? ISAS : 1;
    const int32_t dtypes = row->dtypes && row->op != OP_FLOPS ? DTYPES : 1;
    for (int32_t i = 0; i < layouts * dtypes * isas; i++) {
        const int32_t layout = i / isas / dtypes, dtype = i / isas % dtypes, isa = i % isas;
        if ((row->op == OP_REPACK && !kvb_layouts[layout].whole) ||
            (row->layouts && row->dtypes && !kvb_layout_has(layout, dtype, KVB_K)) ||
            (index >= 0 && kvb_reads(index, layout, dtype, KVB_K) < 0))
            continue;
        const int32_t way = kvb_computes(row->op) ? kvb_way_computed(row->op)
                            : index < 0           ? dtype
                                                  : kvb_way_of(index, dtype);
        if (!has(isa, row->op, way))
            continue;
        kernels[count++] = (kvb_kernel){
            .op = kvb_word("op", row->op),
            .variant = variant,
            .layout = row->layouts ? kvb_word("layout", layout) : "-",
            .dtype = row->dtypes ? kvb_word("dtype", dtype) : "-",
            .isa = kvb_word("isa", isa),
            .about = about,
            .runnable = kvb_isa_runs(isa) && kvb_half_runs(isa, way, KVB_K) &&
                        kvb_half_runs(isa, way, KVB_V),
        };
    }
}

static void build(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].variant)
            add(&rows[i], -1, rows[i].variant, rows[i].about);
        else
            for (int32_t v = 0; v < VARIANTS; v++)
                add(&rows[i], v, kvb_word("variant", v), decode_about[v]);
    }
}

const kvb_kernel *kvb_kernels(int32_t index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build);
    return index >= 0 && index < count ? &kernels[index] : NULL;
}
