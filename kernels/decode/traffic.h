/* What one pass of a decode moves: traffic.c, loads.c. */
#ifndef KVB_TRAFFIC_H
#define KVB_TRAFFIC_H

#include "walk/walk.h"

#pragma GCC visibility push(hidden)

/* A code where memory to count with is lacking. */
int32_t kvb_traffic_decode(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);
int32_t kvb_traffic_twin(const kvb_decode *args, kvb_traffic *traffic);

/* How often a decode loads a row of K or of V, */
double kvb_loads(const kvb_decode *args, bool k);
/* and all scales of `rows` rows of each */
double kvb_scale_loads(const kvb_decode *args, const kvb_plan *plan, double rows);

#pragma GCC visibility pop

#endif
