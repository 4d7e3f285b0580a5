/* A dtype as bytes. */
#ifndef KVB_FORMATS_H
#define KVB_FORMATS_H

#include "base/words.h"

typedef struct kvb_format {
    int32_t elements; /* of a block; where more than one, rows are packed */
    int32_t bytes;    /* of a block */
    bool scaled;      /* one scale per token and head */
} kvb_format;
#define KVB_FORMAT(word, name, ...) [DTYPE_##name] = {__VA_ARGS__},
static const kvb_format kvb_formats[DTYPES] = {KVB_DTYPES(KVB_FORMAT)};
#undef KVB_FORMAT
static const int32_t kvb_scale_bytes[SCALES] = {[SCALE_F32] = 4, [SCALE_F16] = 2};

/* Bytes that carry a row of `dim` elements. */
static inline int64_t kvb_payload(int32_t dtype, int64_t dim)
{
    const kvb_format *f = &kvb_formats[dtype];
    return (dim + f->elements - 1) / f->elements * f->bytes;
}
/* Bytes from a row to the next: packed ones follow at once, all others begin on a line. */
static inline int64_t kvb_row(int32_t dtype, int64_t dim)
{
    return kvb_formats[dtype].elements > 1 ? kvb_payload(dtype, dim)
                                           : round_up(kvb_payload(dtype, dim), LINE);
}

#endif
