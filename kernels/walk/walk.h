/* The walk of a thread over its units: blocks of tokens, and the tile of each KV head of a block.
 */
#ifndef KVB_WALK_H
#define KVB_WALK_H

#include "tier/tier.h"
#include "walk/plan.h"

#pragma GCC visibility push(hidden)

/* Tokens that are taken together. Rows are of the unit's first KV head; the others lie head strides
 * away. */
typedef struct kvb_block {
    const kvb_unit *unit; /* null behind the last block */
    int64_t first;        /* within the unit */
    /* `lead` of them are none of the unit's: the lanes of a transposed block in front of its own */
    int32_t count;
    int32_t lead;
    /* in bytes from the start of a plane; rows and scales lie that far behind their lists */
    int64_t place;
    int64_t scale;
    /* [TILE] the walk's, where all of it is one stretch, or `own`: behind `count` the last row */
    const int64_t *rows;
    /* is repeated, to a grain's end; transposed blocks have all rows. Scaled formats only */
    const int64_t *scales;
    int64_t own_rows[TILE];
    int64_t own_scales[TILE];
} kvb_block;

/* Lists of rows to prefetch while K of a tile is consumed, and while V is. */
typedef struct kvb_lists {
    int64_t k[TILE];
    int64_t v[TILE];
} kvb_lists;

typedef struct kvb_walk {
    const kvb_decode *args;
    const kvb_unit *unit, *end;
    int64_t token; /* within the unit */
    bool scaled;
    const kvb_preset *preset;
    kvb_schedule steady; /* of blocks that are one stretch, most of all; */
    kvb_schedule rest;   /* of others: remainders, pages that lie anywhere */
    int64_t rows[TILE];  /* of a block that is one stretch, from its first row on */
    int64_t scales[TILE];
    /* what to prefetch of such a block, from its first row on; of several heads, for the first one
     */
    kvb_lists lists;
    kvb_requests usual; /* streams and rows to an entry of these lists */
    /* K and V in turn, `lists.k` while K is consumed; else `lists.k` of either plane */
    bool woven;
} kvb_walk;

/* The tier's functions for the rows that a decode reads. */
static inline const kvb_rows *kvb_rows_of(const kvb_decode *args)
{
    return &kvb_tier_of(args->isa)->rows[kvb_row_kernel_of(args->variant, args->cache->k.dtype)];
}

/* schedule.c: of the two kinds of a walk's blocks; and as the twin reads the first. */
void kvb_schedule_make(const kvb_decode *args, kvb_schedule *steady, kvb_schedule *rest);
void kvb_schedule_twin(const kvb_decode *args, kvb_schedule *steady);

/* Units [unit, end), skipping empty ones. */
void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit,
                    const kvb_unit *end);
void kvb_walk_next(kvb_walk *walk, kvb_block *block);

/* Rows (and scales) of one KV head of a block; head counts from the unit's first. */
void kvb_tile_rows(const kvb_decode *args, const kvb_block *block, int64_t head, kvb_tile *tile);
void kvb_tile_scales(const kvb_decode *args, const kvb_block *block, int64_t head, kvb_tile *tile);

/* Whether the scales of a block's tiles are taken where they lie, side by side. Others are
 * collected. */
static inline bool kvb_scales_in_place(const kvb_decode *args, const kvb_block *block)
{
    return args->cache->k.scale == SCALE_F32 && block->rows != block->own_rows &&
           args->cache->k.scale_token_stride == (int64_t)sizeof(float);
}

/* requests.c: a tile's schedule, and what it asks for while the tile is consumed. `next` follows
 * `block` in the walk; `one_plane`: of K only rows of K, of V of V. Lists that are not the walk's
 * are written to `lists`. */
void kvb_tile_requests(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                       int64_t head, bool one_plane, kvb_tile *tile, kvb_lists *lists);
/* What does not change from tile to tile. */
void kvb_requests_start(kvb_walk *walk);

#pragma GCC visibility pop

#endif
