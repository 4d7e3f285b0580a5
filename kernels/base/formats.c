#include "base/formats.h"

const kvb_format kvb_formats[DTYPES] = {
#define FORMAT(word, name, ...) [DTYPE_##name] = {__VA_ARGS__},
    KVB_DTYPES(FORMAT)
};

const int32_t kvb_scale_bytes[SCALES] = {[SCALE_F32] = 4, [SCALE_F16] = 2};
