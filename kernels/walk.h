/* The walk of a thread over its units: blocks of tokens, and the tile of each KV head of a block. */
#ifndef KVB_WALK_H
#define KVB_WALK_H

#include "core.h"

#pragma GCC visibility push(hidden)

/* Tokens that are taken together. Offsets are of the unit's first KV head; the others lie head strides away. */
typedef struct kvb_block {
    const kvb_unit *unit; /* null behind the last block */
    int64_t first;        /* within the unit */
    int32_t count;        /* `lead` of them are none of the unit's: the lanes of a transposed block in front of its own */
    int32_t lead;
    int64_t rows[TILE];   /* behind `count` the last one is repeated, to a step's end; transposed blocks have all rows */
    int64_t scales[TILE]; /* scaled formats only */
} kvb_block;

typedef struct kvb_walk {
    const kvb_decode *args;
    const kvb_unit *unit, *end;
    int64_t token; /* within the unit */
    int32_t step;  /* tokens per block */
} kvb_walk;

/* Units [unit, end), skipping empty ones. */
void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit, const kvb_unit *end);
void kvb_walk_next(kvb_walk *walk, kvb_block *block);

/* Pointers (and scales) of one KV head of a block; head counts from the unit's first. */
void kvb_tile_rows(const kvb_decode *args, const kvb_block *block, int64_t head, kvb_tile *tile);
void kvb_tile_scales(const kvb_decode *args, const kvb_block *block, int64_t head, kvb_tile *tile);

/* Rows to prefetch while a tile is consumed. */
typedef struct kvb_ahead {
    const uint8_t *k[TILE];
    const uint8_t *v[TILE];
} kvb_ahead;
/* Point tile->k_ahead and v_ahead at what the prefetch scheme asks for. `next` follows `block` in the walk. */
void kvb_tile_ahead(const kvb_decode *args, const kvb_block *block, const kvb_block *next, int64_t head, kvb_tile *tile,
                    kvb_ahead *ahead);

/* A head's share of a later block: of K while K is consumed, of V while V is. Returns how many rows lie side by side. */
int64_t kvb_share_ahead(const kvb_decode *args, const kvb_block *later, int64_t head, int32_t count, kvb_ahead *ahead);

#pragma GCC visibility pop

#endif
