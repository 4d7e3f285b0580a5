/* Rows into a cache. */
#ifndef KVB_STORE_H
#define KVB_STORE_H

#include "base/task.h"
#include "tier/tier.h"

#pragma GCC visibility push(hidden)

/* Rows of KV heads from `head` on, each of the next head, or all of this one where they are tokens
 * of it, into the bytes of a plane. */
void kvb_encode_rows(int32_t isa, const kvb_plane *plane, int64_t head, bool of_one,
                     const kvb_encode *rows);

/* matrices.c: by the tier's own copy, to where it does not overlap; of any number of bytes */
void kvb_copy(const kvb_tier *tier, uint8_t *to, const uint8_t *from, int64_t bytes);

/* traffic.c: a code where memory to count with is lacking */
int32_t kvb_traffic_store(const kvb_store *args, kvb_traffic *traffic);

#pragma GCC visibility pop

#endif
