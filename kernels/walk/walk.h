/* The walk of a thread over its units: blocks of tokens, and the tile of each KV head of a block. */
#ifndef KVB_WALK_H
#define KVB_WALK_H

#include "base/core.h"

#pragma GCC visibility push(hidden)

/* Tokens that are taken together. Rows are of the unit's first KV head; the others lie head strides away. */
typedef struct kvb_block {
    const kvb_unit *unit; /* null behind the last block */
    int64_t first;        /* within the unit */
    int32_t count;        /* `lead` of them are none of the unit's: the lanes of a transposed block in front of its own */
    int32_t lead;
    int64_t place;         /* in bytes from the start of a plane; rows and scales lie that far behind their lists */
    int64_t scale;
    const int64_t *rows;   /* [TILE] the walk's, where all of it is one stretch, or `own`: behind `count` the last row */
    const int64_t *scales; /* is repeated, to a grain's end; transposed blocks have all rows. Scaled formats only */
    int64_t own_rows[TILE];
    int64_t own_scales[TILE];
} kvb_block;

/* Rows to prefetch while K of a tile is consumed, and while V is. */
typedef struct kvb_ahead {
    int64_t k[TILE];
    int64_t v[TILE];
} kvb_ahead;

typedef struct kvb_walk {
    const kvb_decode *args;
    const kvb_unit *unit, *end;
    int64_t token;      /* within the unit */
    int32_t step;       /* tokens per block */
    bool scaled;
    int64_t rows[TILE]; /* of a step that is one stretch, from its first row on; such blocks are most of all */
    int64_t scales[TILE];
    kvb_ahead steady;   /* what to prefetch of such a block, from its first row on; of several heads, for the first one */
    int64_t side, each; /* of them, as in a tile */
    int64_t reach;      /* rows of a run of such a block's tiles */
    bool row_by_row;    /* such blocks are read, or touched, so; packed rows never are */
    bool whole;         /* read, and nothing is touched meanwhile */
    int64_t grain;      /* such blocks are some times so many tokens, and others at most so many: what is written down */
    int64_t heads;      /* KV heads of a tile of theirs: 1, or all, whose rows are read in turn; 0: not in this scheme */
    bool woven;         /* K and V in turn, `steady.k` while K is consumed; else `steady.k` of either plane */
} kvb_walk;

/* The tier's functions for the rows that a decode reads. */
static inline const kvb_rows *kvb_rows_of(const kvb_decode *args)
{
    return &kvb_tier_of(args->isa)->rows[kvb_way_of(args->variant, args->cache->dtype)];
}

/* Whether stages that take rows one after another take each of them whole, and touch nothing meanwhile. */
static inline bool kvb_reads_whole(const kvb_decode *args)
{
    const kvb_cache *c = args->cache;
    const kvb_rows *rows = kvb_rows_of(args);
    return rows->whole && rows->whole(args->q_heads / c->kv_heads, c->head_dim);
}

/* KV heads whose rows the scheme reads row by row, or touches so: those that a token has side by side, or one; 0: none. */
static inline int64_t kvb_streams_rows(const kvb_decode *args)
{
    const kvb_cache *c = args->cache;
    const int64_t heads = kvb_unit_heads(args);
    const bool behind = c->token_stride == heads * c->row_bytes && (heads == 1 || c->head_stride == c->row_bytes);
    return args->prefetch == PREFETCH_STREAM && behind && !kvb_layouts[c->layout].paged ? heads : 0;
}

/* Units [unit, end), skipping empty ones. */
void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit, const kvb_unit *end);
void kvb_walk_next(kvb_walk *walk, kvb_block *block);

/* Rows (and scales) of one KV head of a block; head counts from the unit's first. */
void kvb_tile_rows(const kvb_decode *args, const kvb_block *block, int64_t head, kvb_tile *tile);
void kvb_tile_scales(const kvb_decode *args, const kvb_block *block, int64_t head, kvb_tile *tile);

/* Whether the scales of a block's tiles are taken where they lie, side by side. Others are collected. */
static inline bool kvb_scales_in_place(const kvb_decode *args, const kvb_block *block)
{
    return args->cache->scale == SCALE_F32 && block->rows != block->own_rows &&
           args->cache->scale_token_stride == (int64_t)sizeof(float);
}

/* ahead.c: what the prefetch scheme asks for while a tile is consumed. `next` follows `block` in the walk; `one_plane`: of
 * K only rows of K, of V of V. Lists that are not the walk's are written to `ahead`. */
void kvb_tile_ahead(const kvb_walk *walk, const kvb_block *block, const kvb_block *next, int64_t head, bool one_plane,
                    kvb_tile *tile, kvb_ahead *ahead);
/* What does not change from tile to tile. */
void kvb_ahead_start(kvb_walk *walk);

#pragma GCC visibility pop

#endif
