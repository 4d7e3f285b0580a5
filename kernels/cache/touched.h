/* What one pass touches of a cache: the rows of a decode, or those of a store. */
#ifndef KVB_TOUCHED_H
#define KVB_TOUCHED_H

#include "cache/cache.h"

#pragma GCC visibility push(hidden)

typedef struct kvb_touched {
    const kvb_cache *cache;
    const void *of; /* whose arguments `tokens_of` goes by */
    bool stores;
    kvb_reach (*tokens_of)(const struct kvb_touched *touched, int64_t seq);
} kvb_touched;

/* Tokens of all sequences together. */
double kvb_tokens(const kvb_touched *t);
/* Bytes of a row's elements, and of its scale; of a row of K and one of V together. */
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
/* Lines of `rows` rows of each plane, and of their scales: a code where memory to count with is
 * lacking. */
int32_t kvb_lines_of(const kvb_touched *t, double rows, double *lines);
/* Lines of bytes from .. to that no earlier call has counted. Calls go upwards; `next` starts as 0.
 */
double kvb_lines_on(int64_t from, int64_t to, int64_t *next);
/* Bytes of the table's entries that a decode needs, and the lines they lie in. */
double kvb_table_bytes(const kvb_touched *t, double *lines);

#pragma GCC visibility pop

#endif
