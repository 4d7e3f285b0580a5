/* perhead: each query head walks K and V by itself, with an online softmax per token. What most public kernels do. */
#include "decode.h"

void kvb_perhead(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    const kvb_decode *a = &task->args;
    const kvb_rows *rows = &kvb_tier_of(a->isa)->rows[a->cache->dtype];
    kvb_block *block = &state->block[0];
    (void)ticks; /* the stages of a token are too short to be timed apart */
    state->tile.k_ahead.at = state->tile.v_ahead.at = NULL;
    for (const kvb_unit *last = NULL;; last = block->unit) {
        kvb_walk_next(walk, block);
        if (last && block->unit != last)
            kvb_unit_end(task, state, last);
        if (!block->unit)
            return;
        if (block->first == 0)
            kvb_unit_begin(task, state, block->unit);
        kvb_tile_rows(a, block, 0, &state->tile);
        if (kvb_formats[a->cache->dtype].scaled)
            kvb_tile_scales(a, block, 0, &state->tile);
        rows->perhead(&state->tile, state->groups);
    }
}
