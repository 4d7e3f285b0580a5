/* Where the rows of a cache lie. */
#ifndef KVB_CACHE_H
#define KVB_CACHE_H

#include "base/check.h"
#include "base/formats.h"

#pragma GCC visibility push(hidden)

/* ---- layouts.c: where a token's row lies ----------------------------------------------------- */

typedef struct kvb_layout {
    /* blocks of block_tokens, which a table knows, in the order that `inner` says */
    bool paged;
    /* the rows of a token's heads lie side by side; else those of a head's tokens */
    bool by_token;
    bool whole;      /* a head's rows are one stretch, which a cache that grows moves as it is */
    bool transposed; /* K in blocks of LANES tokens, whose cells lie side by side: transposed.c */
    bool quads;      /* and V, the codes of four tokens side by side */
} kvb_layout;
extern const kvb_layout kvb_layouts[LAYOUTS];

enum { PLANES = 2 }; /* KVB_K, KVB_V */
static inline const kvb_plane *kvb_plane_of(const kvb_cache *cache, int32_t plane)
{
    return plane == KVB_K ? &cache->k : &cache->v;
}

/* Whether each row of a plane has a scale beside it. */
static inline bool kvb_scaled(const kvb_plane *plane)
{
    return kvb_formats[plane->dtype].scaled && !plane->channel;
}

/* Strides and sizes of a plane whose dtype, dim and cell are known, from a checked shape. */
void kvb_layout_plan(const kvb_cache *cache, kvb_plane *plane);

/* Whether the layout has such planes of the dtype. */
bool kvb_layout_has(int32_t layout, int32_t dtype, int32_t plane);

/* Whether rows of V lie as those of K do, as far from the start of their planes, and so do scales
 * where both have any. V has where K has: its places are those of both. */
bool kvb_planes_alike(const kvb_cache *cache);

/* Heads of a token lie side by side, so a walk takes all heads of a block of tokens before the next
 * block. */
bool kvb_heads_inner(const kvb_cache *cache);

/* Slots from a token's on without a wrap or an edge of a block, in bytes from the start of a plane:
 * the rows lie token strides apart. A plane that is transposed lies in blocks: there it is where
 * the row would lie, if the block were one of rows. -1: the table leaves the block out. */
typedef struct kvb_stretch {
    int64_t count, row, scale;
} kvb_stretch;
kvb_stretch kvb_stretch_of(const kvb_cache *cache, const kvb_plane *plane, int64_t seq,
                           int64_t head, int64_t token);

/* The same for each of `count` tokens from `first` on; scales may be null. */
void kvb_offsets(const kvb_cache *cache, const kvb_plane *plane, int64_t seq, int64_t head,
                 int64_t first, int64_t count, int64_t *rows, int64_t *scales);

/* ---- transposed.c: blocks of LANES tokens as matrices ---------------------------------------- */

/* The lane of a token in its block; 0 where no plane is transposed. */
int64_t kvb_lane(const kvb_cache *cache, int64_t token);

/* Bytes from a block's start on, that hold all cells with elements: whole lines, but of packed
 * rows. 0 where the plane is not transposed. */
int64_t kvb_block_bytes(const kvb_plane *plane);
/* Where a block has byte j of the codes of a row, those of all its packs counted; and where the
 * scale of its pack-th pack is. */
int64_t kvb_place_of(int32_t dtype, int32_t cell, int64_t dim, int64_t lane, int64_t j);
static inline int64_t kvb_place_of_scale(int64_t lane, int64_t pack)
{
    return (pack * LANES + lane) * (int64_t)sizeof(uint16_t);
}

/* Encoded rows of one head, up to LANES of them side by side, into a block: the first one to
 * `lane`. `to` is where that row would lie if the block were one of rows. */
void kvb_lay_rows(const kvb_plane *plane, const uint8_t *rows, int64_t count, int64_t lane, bool nt,
                  uint8_t *to);
/* The bytes of a row with elements, out of a block of such cells. */
void kvb_gather(int32_t dtype, int32_t cell, const uint8_t *block, int64_t lane, int64_t dim,
                uint8_t *row);

/* Blocks that some tokens' slots lie in, each counted once; or quads of them, of `tokens` each. */
int64_t kvb_blocks_of(const kvb_cache *cache, int64_t first, int64_t end, int64_t tokens);

/* Tokens of a sequence: 0 .. kept, and behind a gap, first .. end. Without a gap, kept is 0. */
typedef struct kvb_reach {
    int64_t kept, first, end;
} kvb_reach;
static inline int64_t kvb_reached(const kvb_reach *r) { return r->kept + r->end - r->first; }
/* The i-th of them. */
static inline int64_t kvb_nth(const kvb_reach *r, int64_t i)
{
    return i < r->kept ? i : r->first + i - r->kept;
}
/* How many of them are before a token that is one. */
static inline int64_t kvb_place_among(const kvb_reach *r, int64_t token)
{
    return token < r->kept ? token : token - r->first + r->kept;
}
/* How many follow each other from the i-th on. */
static inline int64_t kvb_in_a_row(const kvb_reach *r, int64_t i)
{
    return (i < r->kept ? r->kept : kvb_reached(r)) - i;
}

/* What a plane's scale of the whole tensor is. Decode folds K's into the scale of the scores and
 * V's into the output, so no tile knows of them. */
static inline float kvb_tensor(float scale) { return scale == 0.0f ? 1.0f : scale; }

/* ---- check.c --------------------------------------------------------------------------------- */

int32_t kvb_check_shape(const kvb_cache *cache); /* before planning */
int32_t kvb_check_cache(const kvb_cache *cache); /* planned, bound, with lengths and table */
bool kvb_same_rows(const kvb_cache *a, const kvb_cache *b); /* but for the capacity */
/* Entries of the tokens first .. end of a sequence, none below `low`: -1 where a negative entry
 * means skip. */
int32_t kvb_check_table(const kvb_cache *cache, int64_t seq, int64_t first, int64_t end,
                        int32_t low);

#pragma GCC visibility pop

#endif
