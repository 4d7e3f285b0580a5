/* Rows into a cache. */
#ifndef KVB_STORE_H
#define KVB_STORE_H

#include "base/task.h"
#include "tier/tier.h"

#pragma GCC visibility push(hidden)

/* Rows into the bytes of a plane whose scale is `tensor`. */
void kvb_encode_rows(int32_t isa, int32_t dtype, float tensor, const kvb_encode *rows);

/* matrices.c: by the tier's own copy, to where it does not overlap; of any number of bytes */
void kvb_copy(const kvb_tier *tier, uint8_t *to, const uint8_t *from, int64_t bytes);

/* traffic.c: a code where memory to count with is lacking */
int32_t kvb_traffic_store(const kvb_store *args, kvb_traffic *traffic);

#pragma GCC visibility pop

#endif
