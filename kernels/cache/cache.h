/* Where the rows of a cache are. */
#ifndef KVB_CACHE_H
#define KVB_CACHE_H

#include "base/check.h"
#include "base/formats.h"

#pragma GCC visibility push(hidden)

/* ---- layouts.c: where a token's row is ------------------------------------------------------- */

typedef struct kvb_layout {
    /* blocks of block_tokens tokens, found with a table; `inner` gives the order in a block */
    bool paged;
    /* the rows of a token's heads are side by side; else the rows of a head's tokens are */
    bool by_token;
    bool whole;      /* a head's rows are one stretch, so repack can move them */
    bool transposed; /* K is in blocks of LANES tokens, in cells: see transposed.c */
    bool quads;      /* V is in blocks, too, in quads: the codes of four tokens side by side */
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

/* Set strides and sizes of a plane. Its dtype, dim and cell are set, and the shape is checked. */
void kvb_layout_plan(const kvb_cache *cache, kvb_plane *plane);

/* Whether a layout supports a dtype in a plane. */
bool kvb_layout_has(int32_t layout, int32_t dtype, int32_t plane);

/* Whether rows of K and V, and their scales, have the same offsets in their planes. If K has
 * scales, V must have scales, too: V's offsets are then used for both. */
bool kvb_planes_alike(const kvb_cache *cache);

/* Whether heads of a token are side by side. Then a walk takes all heads of a block of tokens
 * before the next block. */
bool kvb_heads_inner(const kvb_cache *cache);

/* A stretch: `count` slots without a wrap or a block edge, whose rows are one token stride apart.
 * `row` and `scale` are the offsets of the first one, in bytes from the start of the plane. In a
 * transposed plane, `row` is where the row would be if the block had rows. -1: the table leaves the
 * block out. */
typedef struct kvb_stretch {
    int64_t count, row, scale;
} kvb_stretch;
/* Return the stretch that begins at a token. */
kvb_stretch kvb_stretch_of(const kvb_cache *cache, const kvb_plane *plane, int64_t seq,
                           int64_t head, int64_t token);

/* Write the same offsets for each of `count` tokens from `first` on; `scales` may be null. */
void kvb_offsets(const kvb_cache *cache, const kvb_plane *plane, int64_t seq, int64_t head,
                 int64_t first, int64_t count, int64_t *rows, int64_t *scales);

/* ---- transposed.c: blocks of LANES tokens as matrices ---------------------------------------- */

/* Return the lane of a token in its block; 0 if no plane is transposed. */
int64_t kvb_lane(const kvb_cache *cache, int64_t token);

/* Return the bytes of a block that hold all cells with elements: whole lines, unless rows are
 * packed. 0: the plane is not transposed. */
int64_t kvb_block_bytes(const kvb_plane *plane);
/* Return the offset in a block of byte j of a row's codes (counted over all its packs), and of the
 * scale of a pack. */
int64_t kvb_place_of(int32_t dtype, int32_t cell, int64_t dim, int64_t lane, int64_t j);
static inline int64_t kvb_place_of_scale(int64_t lane, int64_t pack)
{
    return (pack * LANES + lane) * (int64_t)sizeof(uint16_t);
}

/* Store up to LANES encoded rows of one head, which are side by side, into a block: the first one
 * in `lane`. `to` is where that row would be if the block had rows. */
void kvb_lay_rows(const kvb_plane *plane, const uint8_t *rows, int64_t count, int64_t lane, bool nt,
                  uint8_t *to);
/* Gather the bytes of a row that hold elements from a block with cells of `cell` bytes. */
void kvb_gather(int32_t dtype, int32_t cell, const uint8_t *block, int64_t lane, int64_t dim,
                uint8_t *row);

/* Count the blocks, or quads, of `tokens` slots each that hold the tokens first .. end. */
int64_t kvb_blocks_of(const kvb_cache *cache, int64_t first, int64_t end, int64_t tokens);

/* Tokens of a sequence: 0 .. kept, then a gap, then first .. end. Without a gap, kept is 0. */
typedef struct kvb_reach {
    int64_t kept, first, end;
} kvb_reach;
static inline int64_t kvb_reached(const kvb_reach *r) { return r->kept + r->end - r->first; }
/* Return the i-th token of a reach. */
static inline int64_t kvb_nth(const kvb_reach *r, int64_t i)
{
    return i < r->kept ? i : r->first + i - r->kept;
}
/* Return the index of a token in a reach that has it. */
static inline int64_t kvb_place_among(const kvb_reach *r, int64_t token)
{
    return token < r->kept ? token : token - r->first + r->kept;
}
/* Return how many tokens follow each other without the gap, from the i-th on. */
static inline int64_t kvb_in_a_row(const kvb_reach *r, int64_t i)
{
    return (i < r->kept ? r->kept : kvb_reached(r)) - i;
}

/* Return the value of a plane's `tensor` scale. Decode multiplies K's into the scale of the scores
 * and V's into the output, so tiles do not need them. */
static inline float kvb_tensor(float scale) { return scale == 0.0f ? 1.0f : scale; }

/* ---- check.c --------------------------------------------------------------------------------- */

int32_t kvb_check_shape(const kvb_cache *cache); /* before planning */
int32_t kvb_check_cache(const kvb_cache *cache); /* planned, bound, with lengths and table */
bool kvb_same_rows(const kvb_cache *a, const kvb_cache *b); /* but for the capacity */
/* Check the table entries of the tokens first .. end of a sequence. `low` is the least allowed
 * entry; -1 allows all negative entries, which mean skip. */
int32_t kvb_check_table(const kvb_cache *cache, int64_t seq, int64_t first, int64_t end,
                        int32_t low);

#pragma GCC visibility pop

#endif
