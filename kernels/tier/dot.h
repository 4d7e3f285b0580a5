/* What dot8 and dot16 round to. */
#ifndef KVB_DOT_H
#define KVB_DOT_H

#include "base/core.h"

/* Largest whole numbers of the ways that multiply whole numbers: of a query's elements, and of a tile's weights. 32639 is
 * 127 * 256 + 127, the most that two signed bytes say. */
enum { DOT8_QUERY = 127, DOT8_WEIGHT = 255, DOT16_QUERY = 32639, DOT16_WEIGHT = 32767, DOT16_DIM = 512 };

/* Sums of products with codes of 8 bits: a score's, of all elements, and a tile's, of all tokens. Only dot8 takes rows
 * whole, in longer tiles. */
#define DOT_FITS(most, count) _Static_assert((int64_t)(most) * 128 * (count) <= INT32_MAX, "a sum fits 32 bits")
DOT_FITS(DOT8_QUERY, DIM_MAX);
DOT_FITS(DOT16_QUERY, DOT16_DIM);
DOT_FITS(DOT16_QUERY / 2, DIM_MAX);
DOT_FITS(DOT8_WEIGHT, TILE);
DOT_FITS(DOT16_WEIGHT, TILE_LISTED);

static inline int32_t dot_query(int32_t way, int64_t dim)
{
    return way == READ_DOT8 ? DOT8_QUERY : dim > DOT16_DIM ? DOT16_QUERY / 2 : DOT16_QUERY;
}
static inline int32_t dot_weight(int32_t way) { return way == READ_DOT8 ? DOT8_WEIGHT : DOT16_WEIGHT; }

#endif
