/* perhead: each query row walks K and V by itself, with an online softmax for each token, as most
 * public kernels do. */
#include "decode/decode.h"

void kvb_perhead(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    const kvb_decode *a = &task->args;
    void (*fold)(const kvb_tile *, const kvb_group *) =
        kvb_tier_of(a->isa)->perhead[a->cache->k.dtype];
    kvb_pair *pair = &state->pair;
    (void)ticks; /* the stages of one token are too short to be timed */
    for (kvb_pair_start(pair, walk); pair->block->unit; kvb_pair_next(pair, walk)) {
        if (pair->block->first == 0)
            kvb_unit_begin(task, state, pair->block->unit);
        kvb_tile_make(walk, pair, 0, false, &state->tile, &state->lists);
        fold(&state->tile, state->groups);
        if (pair->next->unit != pair->block->unit)
            kvb_unit_end(task, state, pair->block->unit);
    }
}
