#include <string.h>

#include "walk.h"

/* Where heads lie inside a token, a block of all heads is consumed before the next: K and V of it, 64 KiB each. */
static int32_t block_step(const kvb_decode *a)
{
    int64_t step = kvb_tier_of(a->isa)->tile[a->cache->dtype];
    if (a->variant != VARIANT_PERHEAD && kvb_heads_inner(a->cache)) {
        int64_t fits = 65536 / (a->cache->kv_heads * a->cache->row_bytes) / LANES * LANES;
        step = at_least(LANES, at_most(step, fits));
    }
    return (int32_t)step;
}

void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit, const kvb_unit *end)
{
    *walk = (kvb_walk){.args = args, .unit = unit, .end = end, .step = block_step(args)};
}

static void repeat_last(int64_t *offsets, int64_t count, int64_t end)
{
    const int64_t last = offsets[count - 1];
    for (int64_t t = count; t < end; t++)
        offsets[t] = last;
}

/* The core roof's walk stays on the first `wrap` tokens of the first head, whatever the unit says. */
static void block_offsets(const kvb_decode *a, const kvb_unit *unit, int64_t first, int64_t step, kvb_block *block)
{
    bool wrapped = a->wrap > 0, scaled = kvb_formats[a->cache->dtype].scaled;
    int64_t seq = wrapped ? 0 : unit->seq, head = wrapped ? 0 : unit->head;
    for (int64_t done = 0; done < block->count;) {
        int64_t from = first + done, n = block->count - done;
        if (wrapped) {
            from %= a->wrap;
            n = at_most(n, a->wrap - from);
        }
        kvb_offsets(a->cache, seq, head, from, n, block->rows + done, scaled ? block->scales + done : NULL);
        done += n;
    }
    repeat_last(block->rows, block->count, step);
    if (scaled)
        repeat_last(block->scales, block->count, step);
}

/* Transposed: tiles begin where a block of K does, with tokens in front that are not the unit's, and end where the
 * slots run on elsewhere. So their lanes are those of the blocks. `left` tokens of the unit are still to come. */
static void block_lanes(const kvb_decode *a, const kvb_unit *unit, int64_t token, int64_t left, int64_t step,
                        kvb_block *block)
{
    const kvb_cache *c = a->cache;
    bool wrapped = a->wrap > 0;
    token = wrapped ? token % a->wrap : token;
    left = wrapped ? at_most(left, a->wrap - token) : left;
    int64_t slot = c->ring ? token % c->capacity : token;
    left = c->ring ? at_most(left, c->capacity - slot) : left;
    block->lead = (int32_t)kvb_lane(c, slot);
    block->count = (int32_t)at_most(step, block->lead + left);
    bool scaled = kvb_formats[c->dtype].scaled;
    kvb_offsets(c, wrapped ? 0 : unit->seq, wrapped ? 0 : unit->head, slot - block->lead, block->count, block->rows,
                scaled ? block->scales : NULL);
    for (int32_t t = 0; scaled && t < block->lead; t++)
        block->scales[t] = block->scales[block->lead];
    int64_t whole = round_up(block->count, LANES);
    for (int64_t t = block->count; t < whole; t++)
        block->rows[t] = block->rows[t - 1] + c->token_stride;
    repeat_last(block->rows, whole, step);
    if (scaled)
        repeat_last(block->scales, block->count, step);
}

void kvb_walk_next(kvb_walk *walk, kvb_block *block)
{
    while (walk->unit < walk->end && walk->token >= walk->unit->count) {
        walk->unit++;
        walk->token = 0;
    }
    block->count = 0;
    block->unit = walk->unit < walk->end ? walk->unit : NULL;
    if (!block->unit)
        return;
    int64_t token = walk->unit->first + walk->token, left = walk->unit->count - walk->token;
    block->first = walk->token;
    if (kvb_layouts[walk->args->cache->layout].transposed) {
        block_lanes(walk->args, walk->unit, token, left, walk->step, block);
    } else {
        block->lead = 0;
        block->count = (int32_t)at_most(walk->step, left);
        block_offsets(walk->args, walk->unit, token, walk->step, block);
    }
    walk->token += block->count - block->lead;
}

void kvb_tile_rows(const kvb_decode *a, const kvb_block *block, int64_t head, kvb_tile *tile)
{
    const uint8_t *k = a->cache->k + head * a->cache->head_stride, *v = a->cache->v + head * a->cache->head_stride;
    int32_t filled = (int32_t)round_up(block->count, LANES);
    tile->count = block->count;
    tile->lead = block->lead;
    tile->k_block = kvb_block_bytes(a->cache);
    for (int32_t t = 0; t < filled; t++) {
        tile->k[t] = k + block->rows[t];
        tile->v[t] = v + block->rows[t];
    }
    for (int32_t t = 0; t < tile->lead; t++)
        tile->v[t] = tile->v[tile->lead];
    for (int32_t t = tile->count; tile->k_block && t < filled; t++)
        tile->v[t] = tile->v[t - 1];
}

static void read_scales(const kvb_decode *a, const uint8_t *plane, const int64_t *offsets, int32_t count, float *to)
{
    if (a->cache->scale == SCALE_F32) {
        const int64_t size = sizeof *to;
        const bool rising = !kvb_layouts[a->cache->layout].paged; /* but for a ring's wrap */
        if (rising && offsets[count - 1] - offsets[0] == (count - 1) * size)
            memcpy(to, plane + offsets[0], (size_t)(count * size));
        else
            for (int32_t t = 0; t < count; t++)
                to[t] = *(const float *)(const void *)(plane + offsets[t]);
        return;
    }
    uint16_t raw[TILE];
    for (int32_t t = 0; t < count; t++)
        raw[t] = *(const uint16_t *)(const void *)(plane + offsets[t]);
    kvb_tier_of(a->isa)->rows[DTYPE_F16].decode((const uint8_t *)raw, 1.0f, count, to);
}

void kvb_tile_scales(const kvb_decode *a, const kvb_block *block, int64_t head, kvb_tile *tile)
{
    const kvb_cache *c = a->cache;
    int64_t shift = head * c->scale_head_stride;
    int32_t count = (int32_t)round_up(block->count, LANES);
    read_scales(a, c->k_scale + shift, block->scales, count, tile->k_scale);
    read_scales(a, c->v_scale + shift, block->scales, count, tile->v_scale);
}

/* The lines of scales that a tile of this head will read. Of heads that share a line, the first fetches it. */
static void scales_ahead(const kvb_decode *a, const kvb_block *later, int64_t head)
{
    const kvb_cache *c = a->cache;
    int64_t shift = head * c->scale_head_stride, each = at_least(1, LINE / c->scale_token_stride);
    if (kvb_heads_inner(c) && shift % LINE)
        return;
    for (int64_t t = 0; t < later->count; t += each) {
        __builtin_prefetch(c->k_scale + later->scales[t] + shift);
        __builtin_prefetch(c->v_scale + later->scales[t] + shift);
    }
}

/* Runs of a block's rows that are taken in turn: a page each, where there are so many. Prefetchers in hardware follow a
 * page at a time, and do not cross into the next: a core that reads several side by side keeps more of memory busy than
 * one that reads them one after another. */
static int64_t runs_of(const kvb_decode *a, int64_t rows)
{
    enum { PAGE = 4096, MOST = 8 };
    int64_t runs = 1;
    while (a->prefetch == PREFETCH_WEAVE && runs < MOST && 2 * runs * PAGE <= rows * a->cache->row_bytes)
        runs *= 2;
    return runs;
}

/* A head's share of the rows that a block has in a plane: `count` for each of `heads`, in address order, or from one run
 * after another in turn. */
static void share_of_plane(const kvb_decode *a, const kvb_block *block, const uint8_t *plane, int64_t heads, int64_t head,
                           int32_t count, const uint8_t **to)
{
    const int64_t runs = runs_of(a, heads * count), tokens = count / runs;
    int64_t row = head * tokens, token = row / heads, in = row % heads; /* within a run */
    for (int32_t t = 0; t < count;) {
        const uint8_t *from = plane + in * a->cache->head_stride;
        for (int64_t run = 0; run < runs; run++)
            to[t++] = from + block->rows[run * tokens + token];
        if (++in == heads) {
            in = 0;
            token++;
        }
    }
}

int64_t kvb_share_ahead(const kvb_decode *a, const kvb_block *later, int64_t head, int32_t count, kvb_ahead *ahead)
{
    share_of_plane(a, later, a->cache->k, later->unit->heads, head, count, ahead->k);
    share_of_plane(a, later, a->cache->v, later->unit->heads, head, count, ahead->v);
    return runs_of(a, later->unit->heads * count);
}

/* Rows of K and V in turn, and of each plane from one run after another: half of them for QK, half for PV. Returns how
 * many lie side by side. */
static int64_t weave_planes(const kvb_decode *a, const kvb_block *block, int32_t count, kvb_ahead *ahead)
{
    const int64_t runs = runs_of(a, count), tokens = count / runs;
    const uint8_t **to = ahead->k, **end = to + count;
    for (int64_t token = 0; token < tokens; token++)
        for (int64_t run = 0; run < runs; run++) {
            to = to == end ? ahead->v : to;
            *to++ = a->cache->k + block->rows[run * tokens + token];
            *to++ = a->cache->v + block->rows[run * tokens + token];
        }
    return 2 * runs;
}

/* The rows `distance` bytes further in this unit, and at its end those of the next block. */
static void rows_near(const kvb_decode *a, const kvb_block *block, const kvb_block *next, int64_t head, int32_t count,
                      kvb_ahead *ahead)
{
    const kvb_cache *c = a->cache;
    int64_t skip = at_most(TILE, (a->distance + c->row_bytes - 1) / c->row_bytes);
    const kvb_block *other = next->unit ? next : block;
    int64_t last = round_up(other->count, LANES) - 1;
    for (int64_t t = 0; t < count; t++) {
        int64_t at = t + skip;
        int64_t offset = at < block->count ? block->rows[at] : other->rows[at_most(at - block->count, last)];
        offset += head * c->head_stride;
        ahead->k[t] = c->k + offset;
        ahead->v[t] = c->v + offset;
    }
}

void kvb_tile_ahead(const kvb_decode *a, const kvb_block *block, const kvb_block *next, int64_t head, kvb_tile *tile,
                    kvb_ahead *ahead)
{
    int32_t count = (int32_t)round_up(block->count, LANES);
    tile->k_ahead = tile->v_ahead = NULL;
    if (a->prefetch == PREFETCH_OFF)
        return;
    tile->k_ahead = ahead->k;
    tile->v_ahead = ahead->v;
    tile->side = 1;
    const kvb_block *later = next->unit ? next : block;
    if (kvb_formats[a->cache->dtype].scaled)
        scales_ahead(a, later, head);
    if (a->prefetch == PREFETCH_NEAR) {
        rows_near(a, block, next, head, count, ahead);
    } else if (block->unit->heads > 1) {
        tile->side = kvb_share_ahead(a, later, head, count, ahead);
    } else if (a->prefetch == PREFETCH_WEAVE) {
        tile->side = weave_planes(a, later, count, ahead);
    } else { /* QK fetches V of this tile, PV the next tile's K */
        share_of_plane(a, block, a->cache->v, 1, 0, count, ahead->k);
        share_of_plane(a, later, a->cache->k, 1, 0, count, ahead->v);
    }
}
