/* How many bytes the rows of each dtype have. */
#ifndef KVB_FORMATS_H
#define KVB_FORMATS_H

#include "base/words.h"

typedef struct kvb_format {
    int32_t elements; /* elements of a block; if more than one, rows are packed */
    int32_t bytes;    /* bytes of a block */
    bool scaled;      /* one scale per token and KV head (of K: or per KV head and element) */
    /* 8-bit floats: bits of the exponent, 3 to 5; the rest are a sign and a fraction. 0: another
     * dtype */
    int32_t exponent;
    /* 8-bit floats. true: the largest exponent means Inf and NaN, as in IEEE 754; false: only 0x7f
     * and 0xff are NaN, and there is no Inf */
    bool infinities;
} kvb_format;
#define KVB_FORMAT(word, name, count, size, ...) \
    [DTYPE_##name] = {.elements = count, .bytes = size, __VA_ARGS__},
static const kvb_format kvb_formats[DTYPES] = {KVB_DTYPES(KVB_FORMAT)};
#undef KVB_FORMAT
static const int32_t kvb_scale_bytes[SCALES] = {[SCALE_F32] = 4, [SCALE_F16] = 2};

/* 8-bit floats: the exponent field of 1.0, the code of the largest value, and that value. */
static inline int32_t kvb_bias(const kvb_format *f) { return (1 << (f->exponent - 1)) - 1; }
static inline int32_t kvb_largest_code(const kvb_format *f)
{
    return f->infinities ? 0x7f - (1 << (7 - f->exponent)) : 0x7e;
}
static inline float kvb_largest(const kvb_format *f)
{
    const int32_t one = 1 << (7 - f->exponent), code = kvb_largest_code(f), power = code / one;
    return (float)(one + code % one) / (float)one * (float)(1 << (power - kvb_bias(f)));
}

/* Bytes of a row of `dim` elements, without padding. */
static inline int64_t kvb_payload(int32_t dtype, int64_t dim)
{
    const kvb_format *f = &kvb_formats[dtype];
    return (dim + f->elements - 1) / f->elements * f->bytes;
}
/* Bytes of a pack's scale (0 if the dtype is not packed), and of its codes (one element's bytes if
 * it is not packed). */
static inline int64_t kvb_pack_scale(int32_t dtype)
{
    return kvb_formats[dtype].elements > 1 ? (int64_t)sizeof(uint16_t) : 0;
}
static inline int64_t kvb_pack_codes(int32_t dtype)
{
    return kvb_formats[dtype].bytes - kvb_pack_scale(dtype);
}
/* Bytes from a row to the next. Packed rows follow without a gap; others begin on a cache line. */
static inline int64_t kvb_row(int32_t dtype, int64_t dim)
{
    return kvb_formats[dtype].elements > 1 ? kvb_payload(dtype, dim)
                                           : round_up(kvb_payload(dtype, dim), LINE);
}

#endif
