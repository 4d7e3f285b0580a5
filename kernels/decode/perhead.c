/* perhead: each query head walks K and V by itself, with an online softmax per token. What most public kernels do. */
#include "decode/decode.h"

void kvb_perhead(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    const kvb_decode *a = &task->args;
    const kvb_rows *rows = &kvb_tier_of(a->isa)->rows[a->cache->k.dtype];
    kvb_block *block = &state->block[0], *next = &state->block[1];
    (void)ticks; /* the stages of a token are too short to be timed apart */
    kvb_walk_next(walk, block);
    while (block->unit) {
        kvb_walk_next(walk, next);
        if (block->first == 0)
            kvb_unit_begin(task, state, block->unit);
        kvb_tile_rows(a, block, 0, &state->tile);
        if (walk->scaled)
            kvb_tile_scales(a, block, 0, &state->tile);
        kvb_tile_requests(walk, block, next, 0, false, &state->tile, &state->lists);
        rows->perhead(&state->tile, state->groups);
        if (next->unit != block->unit)
            kvb_unit_end(task, state, block->unit);
        kvb_block *done = block;
        block = next;
        next = done;
    }
}
