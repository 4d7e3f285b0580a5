/* What one pass of a decode moves. */
#ifndef KVB_TRAFFIC_H
#define KVB_TRAFFIC_H

#include "walk/walk.h"

#pragma GCC visibility push(hidden)

/* A code where memory to count with is lacking. */
int32_t kvb_traffic_decode(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);
int32_t kvb_traffic_twin(const kvb_decode *args, kvb_traffic *traffic);

#pragma GCC visibility pop

#endif
