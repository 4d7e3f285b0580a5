/* Count what one pass of a decode or a store touches in a cache. */
#ifndef KVB_TOUCHED_H
#define KVB_TOUCHED_H

#include "cache/cache.h"

#pragma GCC visibility push(hidden)

typedef struct kvb_touched {
    const kvb_cache *cache;
    const void *of; /* arguments of the decode or store, for `tokens_of` */
    bool stores;
    kvb_reach (*tokens_of)(const struct kvb_touched *touched, int64_t seq);
} kvb_touched;

/* Return the number of tokens of all sequences. */
double kvb_tokens(const kvb_touched *t);
/* Return the bytes of a row's elements, and of its scale; then the sums for a row of K and one of
 * V. / */
double kvb_row_size(const kvb_plane *plane);
double kvb_scale_size(const kvb_plane *plane);
static inline double kvb_row_sizes(const kvb_cache *cache)
{
    return kvb_row_size(&cache->k) + kvb_row_size(&cache->v);
}
static inline double kvb_scale_sizes(const kvb_cache *cache)
{
    return kvb_scale_size(&cache->k) + kvb_scale_size(&cache->v);
}
/* Count the lines of `rows` rows of each plane, and of their scales. Fails if memory is lacking. */
int32_t kvb_lines_of(const kvb_touched *t, double rows, double *lines);
/* Count the lines of bytes from .. to that no earlier call has counted. Calls must ascend; *next
 * begins as 0. */
double kvb_lines_on(int64_t from, int64_t to, int64_t *next);
/* Return the bytes of the table entries that a decode needs, and count their lines. */
double kvb_table_bytes(const kvb_touched *t, double *lines);

#pragma GCC visibility pop

#endif
