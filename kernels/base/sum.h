/* A checksum of what a twin or a read probe has loaded. A test sees from it what was left out and
 * what was read twice. */
#ifndef KVB_SUM_H
#define KVB_SUM_H

#include "base/words.h"

/* The sum of all lanes is the checksum: 16-bit words added modulo 2^16. So the order of loads does
 * not matter. Every row is a whole number of words. */
enum { SUM_LANES = 64, SUM_REST = 8 };
typedef struct kvb_sum {
    _Alignas(2 * LINE) uint16_t lanes[SUM_LANES];
    uint16_t rest[SUM_REST]; /* sums of parts of a line */
} kvb_sum;

#endif
