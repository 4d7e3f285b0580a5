/* What a twin or a read probe has loaded, as one number: so that a test sees what was left out, and
 * what was read twice. */
#ifndef KVB_SUM_H
#define KVB_SUM_H

#include "base/words.h"

/* 16-bit words, added modulo 2^16: their order does not matter, and every row is a whole number of
 * them. The number is the sum of all lanes. */
enum { SUM_LANES = 64, SUM_REST = 8 };
typedef struct kvb_sum {
    _Alignas(2 * LINE) uint16_t lanes[SUM_LANES];
    uint16_t rest[SUM_REST]; /* of what is less than a line */
} kvb_sum;

#endif
