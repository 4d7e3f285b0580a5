/* What dot8 and dot16 round to. */
#ifndef KVB_DOT_H
#define KVB_DOT_H

#include "base/core.h"

/* Largest whole numbers of the ways that multiply whole numbers: of a query's elements, and of a tile's weights. A code
 * is at most 128. So a score is at most 127 * 128 * 1024, or for dot16 32639 * 128 * 512 = 2139029504 and half as much
 * times two: below 2^31, wherever the sum stands. A tile's sum is at most 128 * 32767 * 256 = 1073709056. And 32639 is
 * 127 * 256 + 127, the most that two signed bytes say. */
enum { DOT8_QUERY = 127, DOT8_WEIGHT = 255, DOT16_QUERY = 32639, DOT16_WEIGHT = 32767, DOT16_DIM = 512 };
static inline int32_t dot_query(int32_t way, int64_t dim)
{
    return way == READ_DOT8 ? DOT8_QUERY : dim > DOT16_DIM ? DOT16_QUERY / 2 : DOT16_QUERY;
}
static inline int32_t dot_weight(int32_t way) { return way == READ_DOT8 ? DOT8_WEIGHT : DOT16_WEIGHT; }

#endif
