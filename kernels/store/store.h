/* Storing rows into a cache. */
#ifndef KVB_STORE_H
#define KVB_STORE_H

#include "base/task.h"
#include "tier/tier.h"

#pragma GCC visibility push(hidden)

/* Encode rows to the bytes of a plane. of_one: all rows are tokens of KV head `head`; else the rows
 * are those of `head` and the next KV heads. */
void kvb_encode_rows(int32_t isa, const kvb_plane *plane, int64_t head, bool of_one,
                     const kvb_encode *rows);

/* matrices.c: copy any number of bytes with the tier's copy. `to` and `from` must not overlap. */
void kvb_copy(const kvb_tier *tier, uint8_t *to, const uint8_t *from, int64_t bytes);

/* traffic.c: count what a pass moves. Fails if memory is lacking. */
int32_t kvb_traffic_store(const kvb_store *args, kvb_traffic *traffic);

#pragma GCC visibility pop

#endif
