/* What a variant of decode makes of a cache's rows. Most take every layout and dtype, and its values as they are. */
#include "core.h"

/* A variant that takes K as a transposed layout has it; or that is of one dtype alone, whose values it takes as those
 * of another one. */
typedef struct reading {
    bool transposed;
    bool apart;
    int32_t dtype;
    int32_t as;
    int32_t way; /* of reading such rows: index into the rows of a tier */
} reading;

static const reading readings[VARIANTS] = {
    [VARIANT_FLASH] = {.transposed = true},
    [VARIANT_TWOPASS] = {.transposed = true},
    [VARIANT_ROUND16] = {.apart = true, .dtype = DTYPE_F32, .as = DTYPE_F16, .way = READ_ROUND16},
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

int32_t kvb_way_of(int32_t variant, int32_t dtype) { return readings[variant].apart ? readings[variant].way : dtype; }
