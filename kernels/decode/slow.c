/* A slowdown of known size, compiled in by KVB_SLOW=<share> alone: what a comparison of two builds must notice. */
#include "decode/decode.h"

#ifdef KVB_SLOW

#ifdef KVB_SLOW_DTYPE
#define CHOSEN_DTYPE(dtype) ((dtype) == KVB_SLOW_DTYPE)
#else
#define CHOSEN_DTYPE(dtype) true
#endif
#ifdef KVB_SLOW_LAYOUT
#define CHOSEN_LAYOUT(layout) ((layout) == KVB_SLOW_LAYOUT)
#else
#define CHOSEN_LAYOUT(layout) true
#endif
#ifdef KVB_SLOW_VARIANT
#define CHOSEN_VARIANT(variant) ((variant) == KVB_SLOW_VARIANT)
#else
#define CHOSEN_VARIANT(variant) true
#endif

/* `share` of the rows of a thread's units, from the start of the first on, as the twin reads them without prefetching. */
void kvb_slow(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit, const kvb_unit *end)
{
    const kvb_decode *a = &task->args;
    if (!CHOSEN_DTYPE(a->cache->k.dtype) || !CHOSEN_LAYOUT(a->cache->layout) || !CHOSEN_VARIANT(a->variant))
        return;
    double rows = 0.0;
    for (const kvb_unit *u = unit; u < end; u++)
        rows += (double)(u->count * u->heads);
    int64_t left = (int64_t)(rows * (KVB_SLOW) + 0.5);
    kvb_walk walk;
    kvb_block *block = &state->block[0];
    kvb_tile *tile = &state->tile;
    kvb_walk_start(&walk, a, unit, end);
    for (kvb_walk_next(&walk, block); block->unit && left > 0; kvb_walk_next(&walk, block))
        for (int64_t h = 0; h < block->unit->heads && left > 0; h++) {
            kvb_tile_rows(a, block, h, tile);
            tile->count = (int32_t)at_most(tile->count, left);
            tile->schedule = &kvb_plain;
            tile->k_scale = NULL;
            kvb_tier_of(a->isa)->twin(tile, a->cache->k.row_bytes);
            left -= tile->count;
        }
}

#endif
