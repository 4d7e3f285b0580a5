/* The walk of a thread over its units: blocks of tokens, and the tile of each KV head of a block.
 */
#ifndef KVB_WALK_H
#define KVB_WALK_H

#include "tier/tier.h"
#include "walk/plan.h"

#pragma GCC visibility push(hidden)

/* Where a block lies in a plane. Rows are of the unit's first KV head; the others lie head strides
 * away. */
typedef struct kvb_spot {
    /* in bytes from the start of the plane; rows and scales lie that far behind their lists */
    int64_t place;
    int64_t scale;
    /* [TILE]: the walk's where the block is one stretch, or `own`: behind `count` the last row is
     * repeated, to a grain's end; transposed blocks have all rows. `scales` of scaled formats only
     */
    const int64_t *rows;
    const int64_t *scales;
    int64_t own_rows[TILE];
    int64_t own_scales[TILE];
} kvb_spot;

/* Tokens that are taken together. */
typedef struct kvb_block {
    const kvb_unit *unit; /* null behind the last block */
    int64_t first;        /* within the unit, */
    int64_t token;        /* and of its sequence: that behind the lead */
    /* `lead` of them are none of the unit's: the lanes of a transposed block in front of its own */
    int32_t count;
    int32_t lead;
    bool stretch; /* its rows lie one token stride apart */
    kvb_spot k;
    /* where planes are alike, K's is V's, too; else */
    const kvb_spot *v;
    kvb_spot own_v;
} kvb_block;

/* Lists of rows that are asked for while K of a tile is consumed, and while V is. */
typedef struct kvb_lists {
    int64_t k[TILE];
    int64_t v[TILE];
} kvb_lists;

/* How blocks are cut: the same for both planes. */
typedef struct kvb_cut {
    int32_t tokens; /* of a block, at most */
    /* blocks that are one stretch are some times so many tokens, and others at most so many */
    int32_t grain;
} kvb_cut;

/* Of a plane: its schedules and its lists. */
typedef struct kvb_plane_walk {
    const kvb_plane *plane;
    kvb_schedule steady; /* of blocks that are one stretch, most of all; */
    kvb_schedule rest;   /* of others: remainders, pages that lie anywhere */
    int64_t rows[TILE];  /* of a block that is one stretch, from its first row on */
    int64_t scales[TILE];
} kvb_plane_walk;

typedef struct kvb_walk {
    const kvb_decode *args;
    const kvb_unit *unit, *end;
    int64_t token; /* within the unit */
    const kvb_preset *preset;
    kvb_cut cut;
    bool alike; /* K and V lie alike: their lists are one */
    kvb_plane_walk k, v;
    /* what is asked for of a block that is one stretch, from its first row on; of several heads,
     * for the first one */
    kvb_lists lists;
    kvb_asked usual[PLANES]; /* streams and rows to an entry of these lists */
} kvb_walk;

/* The tier's halves for a decode. */
static inline const kvb_qk *kvb_qk_of(const kvb_decode *args)
{
    const int32_t way = kvb_way_of(args->variant, args->cache->k.dtype);
    return &kvb_tier_with(args->isa, way)->qk[way];
}
static inline const kvb_pv *kvb_pv_of(const kvb_decode *args)
{
    const int32_t way = kvb_way_of(args->variant, args->cache->v.dtype);
    return &kvb_tier_with(args->isa, way)->pv[way];
}

/* Query rows that both fold in a call. */
static inline int64_t kvb_most_of(const kvb_decode *args)
{
    return at_most(kvb_qk_of(args)->half.most, kvb_pv_of(args)->half.most);
}

/* schedule.c: how blocks are cut, and the schedules of both planes; and as the twin reads the
 * steady ones. */
void kvb_schedule_make(kvb_walk *walk);
void kvb_schedule_twin(kvb_walk *walk);

/* Units [unit, end), skipping empty ones. */
void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit,
                    const kvb_unit *end);
void kvb_walk_next(kvb_walk *walk, kvb_block *block);

/* Rows (and scales, of planes that have any) of one KV head of a block; head counts from the unit's
 * first. */
void kvb_tile_rows(const kvb_walk *walk, const kvb_block *block, int64_t head, kvb_tile *tile);
void kvb_tile_scales(const kvb_walk *walk, const kvb_block *block, int64_t head, kvb_tile *tile);

/* Whether a plane's scales of the block's tiles are taken where they lie, side by side. Others are
 * collected. */
static inline bool kvb_scales_in_place(const kvb_plane *plane, const kvb_block *block)
{
    return plane->scale == SCALE_F32 && block->stretch &&
           plane->scale_token_stride == (int64_t)sizeof(float);
}

/* requests.c: a tile's schedules, and what they ask for while the tile is consumed. `next` follows
 * `block` in the walk; `apart`: of K only rows of K, of V of V. Lists that are not the walk's are
 * written to `lists`. */
void kvb_tile_requests(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                       int64_t head, bool apart, kvb_tile *tile, kvb_lists *lists);
/* What does not change from tile to tile. */
void kvb_requests_start(kvb_walk *walk);

#pragma GCC visibility pop

#endif
