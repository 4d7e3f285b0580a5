/* A slowdown of known size, only in a build with KVB_SLOW=<share>. A comparison of two builds must
 * notice it. */
#include "decode/decode.h"

#ifdef KVB_SLOW

#ifndef KVB_SLOW_DTYPE
#define KVB_SLOW_DTYPE -1 /* all */
#endif
#ifndef KVB_SLOW_LAYOUT
#define KVB_SLOW_LAYOUT -1
#endif
#ifndef KVB_SLOW_VARIANT
#define KVB_SLOW_VARIANT -1
#endif

static bool chosen(int32_t one, int32_t word) { return one < 0 || one == word; }

/* Read a share of KVB_SLOW of the rows of a thread's units again, from the first unit on, as the
 * twin reads them without prefetch. */
void kvb_slow(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit,
              const kvb_unit *end)
{
    const kvb_decode *a = &task->args;
    if (!chosen(KVB_SLOW_DTYPE, a->cache->k.dtype) || !chosen(KVB_SLOW_LAYOUT, a->cache->layout) ||
        !chosen(KVB_SLOW_VARIANT, a->variant))
        return;
    double rows = 0.0;
    for (const kvb_unit *u = unit; u < end; u++)
        rows += (double)(u->count * u->heads);
    int64_t left = (int64_t)(rows * (KVB_SLOW) + 0.5);
    kvb_walk walk;
    kvb_sum unused = {0};
    kvb_block *block = &state->pair.blocks[0];
    kvb_tile *tile = &state->tile;
    kvb_walk_start(&walk, a, unit, end);
    for (kvb_walk_next(&walk, block); block->unit && left > 0; kvb_walk_next(&walk, block))
        for (int64_t h = 0; h < block->unit->heads && left > 0; h++) {
            kvb_tile_rows(&walk, block, h, tile);
            tile->count = (int32_t)at_most(tile->count, left);
            tile->k.scale = tile->v.scale = NULL;
            kvb_tile_plain(tile);
            kvb_tier_of(a->isa)->twin(tile, &unused);
            left -= tile->count;
        }
}

#endif
