#include "core.h"

const kvb_format kvb_formats[DTYPES] = {
    [DTYPE_F32] = {.element_bytes = 4},
    [DTYPE_F16] = {.element_bytes = 2},
    [DTYPE_BF16] = {.element_bytes = 2},
    [DTYPE_I8] = {.element_bytes = 1, .scaled = true},
};

const int32_t kvb_scale_bytes[SCALES] = {[SCALE_F32] = 4, [SCALE_F16] = 2};
