/* The walk of a thread over its units: it makes blocks of tokens, and a tile for each KV head of a
 * block. */
#ifndef KVB_WALK_H
#define KVB_WALK_H

#include "tier/tier.h"
#include "walk/plan.h"

#pragma GCC visibility push(hidden)

/* Where a block is in a plane: row t of the unit's first KV head is at place + rows[t], its scale
 * at scale + scales[t]. Rows of other heads are head strides away. */
typedef struct kvb_spot {
    /* bytes from the start of the plane's rows, and of its scales */
    int64_t place;
    int64_t scale;
    /* [TILE]: the walk's lists if the block is one stretch, else own_rows and own_scales. Own lists
     * repeat the last row up to a multiple of the grain; those of transposed blocks have all rows.
     * `scales`: only if the format has scales */
    const int64_t *rows;
    const int64_t *scales;
    int64_t own_rows[TILE];
    int64_t own_scales[TILE];
} kvb_spot;

/* A block: tokens that are taken together. */
typedef struct kvb_block {
    const kvb_unit *unit; /* null after the last block */
    int64_t first;        /* index in the unit of its first token after the lead */
    int64_t token;        /* the same token in its sequence */
    /* `count` tokens, of which the first `lead` do not belong to the unit: they are the lanes of a
     * transposed block before the unit's own */
    int32_t count;
    int32_t lead;
    bool stretch; /* its rows are one token stride apart */
    kvb_spot k;
    const kvb_spot *v; /* &k if the planes are alike, else &own_v */
    kvb_spot own_v;
} kvb_block;

/* Lists of rows to prefetch while K of a tile is read, and while V is read. */
typedef struct kvb_lists {
    int64_t k[TILE];
    int64_t v[TILE];
} kvb_lists;

/* How units are cut into blocks, for both planes. */
typedef struct kvb_cut {
    int32_t tokens; /* most tokens of a block */
    /* a block that is one stretch has a multiple of `grain` tokens; others at most `grain` */
    int32_t grain;
} kvb_cut;

/* A plane with its schedules and lists. */
typedef struct kvb_plane_walk {
    const kvb_plane *plane;
    kvb_schedule steady; /* for blocks that are one stretch: most blocks */
    kvb_schedule rest;   /* for other blocks: remainders, pages in any place */
    int64_t rows[TILE];  /* offsets of the rows of a stretch from its first row */
    int64_t scales[TILE];
} kvb_plane_walk;

typedef struct kvb_walk {
    const kvb_decode *args;
    const kvb_unit *unit, *end;
    int64_t token; /* within the unit */
    const kvb_preset *preset;
    kvb_cut cut;
    bool alike; /* K and V have the same geometry, and share lists */
    kvb_plane_walk k, v;
    /* rows to prefetch of a block that is one stretch, as offsets from its first row; for several
     * heads, the share of the first one */
    kvb_lists lists;
    kvb_asked usual[PLANES]; /* streams and rows_per_entry of these lists */
} kvb_walk;

/* Return the tier's halves for a decode. */
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

/* Return the most query rows that both halves take in a call. */
static inline int64_t kvb_most_of(const kvb_decode *args)
{
    return at_most(kvb_qk_of(args)->half.most, kvb_pv_of(args)->half.most);
}

/* schedule.c: set the cut and the schedules of both planes; change the steady schedules to those of
 * the twin. */
void kvb_schedule_make(kvb_walk *walk);
void kvb_schedule_twin(kvb_walk *walk);

/* Begin a walk over units [unit, end), and make its next block. Empty units are skipped. */
void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit,
                    const kvb_unit *end);
void kvb_walk_next(kvb_walk *walk, kvb_block *block);

/* Set the rows of a tile, or its scales (if the planes have any), for one KV head of a block.
 * `head` counts from the unit's first. */
void kvb_tile_rows(const kvb_walk *walk, const kvb_block *block, int64_t head, kvb_tile *tile);
void kvb_tile_scales(const kvb_walk *walk, const kvb_block *block, int64_t head, kvb_tile *tile);

/* Whether a tile uses a plane's scales in place, because they are side by side. Else they are
 * copied. */
static inline bool kvb_scales_in_place(const kvb_plane *plane, const kvb_block *block)
{
    return plane->scale == SCALE_F32 && block->stretch &&
           plane->scale_token_stride == (int64_t)sizeof(float);
}

/* requests.c: set a tile's schedules and the rows to prefetch while the tile is read. `next`
 * follows `block` in the walk. `apart`: K prefetches only K, V only V. New lists are written to
 * `lists`. */
void kvb_tile_requests(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                       int64_t head, bool apart, kvb_tile *tile, kvb_lists *lists);
/* requests.c: make the lists that are the same for all tiles. */
void kvb_requests_start(kvb_walk *walk);

#pragma GCC visibility pop

#endif
