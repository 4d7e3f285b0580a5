/* What a variant of decode makes of a cache's rows. Most take every layout and dtype, and its values as they are. */
#include "tier/dot.h"

/* A variant may take K as a transposed layout has it; and be of one dtype alone, whose values it takes as they are or as
 * those of another one. */
typedef struct reading {
    bool transposed;
    bool apart;
    int32_t dtype;
    int32_t as;
    int32_t row_kernel; /* of reading such rows: index into the rows of a tier */
} reading;

static const reading readings[VARIANTS] = {
    [VARIANT_FLASH] = {.transposed = true},
    [VARIANT_TWOPASS] = {.transposed = true},
    [VARIANT_ROUND16] = {.apart = true, .dtype = DTYPE_F32, .as = DTYPE_F16, .row_kernel = READ_ROUND16},
    [VARIANT_DOT8] = {.transposed = true, .apart = true, .dtype = DTYPE_I8, .as = DTYPE_I8, .row_kernel = READ_DOT8},
    [VARIANT_DOT16] = {.transposed = true, .apart = true, .dtype = DTYPE_I8, .as = DTYPE_I8, .row_kernel = READ_DOT16},
};

int32_t kvb_reads(int32_t variant, int32_t layout, int32_t dtype)
{
    if (variant < 0 || variant >= VARIANTS || layout < 0 || layout >= LAYOUTS || dtype < 0 || dtype >= DTYPES)
        return -1;
    const reading *r = &readings[variant];
    if (!kvb_layout_has(layout, dtype) || (kvb_layouts[layout].transposed && !r->transposed))
        return -1;
    return !r->apart ? dtype : dtype == r->dtype ? r->as : -1;
}

int32_t kvb_row_kernel_of(int32_t variant, int32_t dtype) { return readings[variant].apart ? readings[variant].row_kernel : dtype; }

bool kvb_has_row_kernel(int32_t isa, int32_t row_kernel) { return kvb_tier_of(isa) && kvb_tier_of(isa)->rows[row_kernel].qk[0]; }

bool kvb_widens(int32_t isa, int32_t row_kernel) { return row_kernel != DTYPE_F32 && kvb_tier_of(isa)->rows[row_kernel].decode; }

int32_t kvb_levels(int32_t variant, int64_t head_dim, int32_t weights)
{
    if (variant != VARIANT_DOT8 && variant != VARIANT_DOT16)
        return 0;
    return weights ? dot_weight(readings[variant].row_kernel) : dot_query(readings[variant].row_kernel, head_dim);
}
