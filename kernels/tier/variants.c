/* What a variant of decode makes of a cache's rows. Most take every layout and dtype, and its
 * values as they are. */
#include "tier/dot.h"

/* A variant may take K as a transposed layout has it; and be of some dtypes alone, each with a way
 * of its own to read rows, whose values it takes as they are or as f16. */
typedef struct reading {
    bool transposed;
    bool apart;
    bool halves;
    /* of one that is apart: index into the rows of a tier, or 0 where it has none */
    int32_t row_kernels[DTYPES];
} reading;

#define DOT_PACK(word, name) [DTYPE_##name] = READ_DOT_##name,
static const reading readings[VARIANTS] = {
    [VARIANT_FLASH] = {.transposed = true},
    [VARIANT_TWOPASS] = {.transposed = true},
    [VARIANT_ROUND16] = {.apart = true,
                         .halves = true,
                         .row_kernels = {[DTYPE_F32] = READ_ROUND16}},
    [VARIANT_DOT] = {.transposed = true,
                     .apart = true,
                     .row_kernels = {[DTYPE_I8] = READ_DOT_I8, KVB_DOT_PACKS(DOT_PACK)}},
};

int32_t kvb_reads(int32_t variant, int32_t layout, int32_t dtype)
{
    if (variant < 0 || variant >= VARIANTS || layout < 0 || layout >= LAYOUTS || dtype < 0 ||
        dtype >= DTYPES)
        return -1;
    const reading *r = &readings[variant];
    if (!kvb_layout_has(layout, dtype) || (kvb_layouts[layout].transposed && !r->transposed) ||
        (r->apart && !r->row_kernels[dtype]))
        return -1;
    return r->halves ? DTYPE_F16 : dtype;
}

int32_t kvb_row_kernel_of(int32_t variant, int32_t dtype)
{
    return readings[variant].apart ? readings[variant].row_kernels[dtype] : dtype;
}

bool kvb_has_row_kernel(int32_t isa, int32_t row_kernel)
{
    return kvb_tier_of(isa) && kvb_tier_of(isa)->rows[row_kernel].qk[0];
}

bool kvb_widens(int32_t isa, int32_t row_kernel)
{
    return row_kernel != DTYPE_F32 && kvb_tier_of(isa)->rows[row_kernel].decode;
}

int32_t kvb_levels(int32_t variant, int32_t dtype, int32_t which)
{
    if (kvb_reads(variant, LAYOUT_HEAD, dtype) < 0 ||
        kvb_row_kernel_of(variant, dtype) < READ_DOT_I8)
        return 0;
    const int32_t elements = kvb_formats[dtype].elements, packed = elements > 1;
    return which == 0 ? DOT_QUERY : which == 1 ? DOT_WEIGHT : packed * elements;
}
