#include "walk/walk.h"

void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit,
                    const kvb_unit *end)
{
    walk->args = args;
    walk->unit = unit;
    walk->end = end;
    walk->token = 0;
    walk->scaled = kvb_formats[args->cache->k.dtype].scaled;
    walk->preset = &kvb_presets[args->schedule];
    kvb_schedule_make(args, &walk->steady, &walk->rest);
    for (int64_t t = 0; t < walk->steady.tokens; t++)
        walk->rows[t] = t * args->cache->k.token_stride;
    for (int64_t t = 0; walk->scaled && t < walk->steady.tokens; t++)
        walk->scales[t] = t * args->cache->k.scale_token_stride;
    kvb_requests_start(walk);
}

static void repeat_last(int64_t *offsets, int64_t count, int64_t end)
{
    const int64_t last = offsets[count - 1];
    for (int64_t t = count; t < end; t++)
        offsets[t] = last;
}

/* Whether the block's rows, from `token` of this sequence and head on, are one stretch: then
 * nothing has to be written down but where it begins. The block is cut to as many grains as the
 * stretch has; where that is none, to one at most. */
static bool one_stretch(const kvb_walk *walk, int64_t seq, int64_t head, int64_t token,
                        kvb_block *block)
{
    const kvb_cache *c = walk->args->cache;
    if (kvb_layouts[c->layout].paged && c->block_tokens < block->count)
        return false;
    const kvb_stretch s = kvb_stretch_of(c, seq, head, token);
    const int64_t grains = block->lead ? 0 : at_most(block->count, s.count) / walk->steady.grain;
    block->count =
        (int32_t)(grains ? grains * walk->steady.grain : at_most(block->count, walk->steady.grain));
    block->place = s.row;
    block->scale = s.scale;
    block->rows = walk->rows;
    block->scales = walk->scales;
    return grains > 0;
}

/* The block's own lists, of which `rows` rows are there. */
static void write_down(const kvb_walk *walk, kvb_block *block, int64_t rows)
{
    block->place = block->scale = 0;
    block->rows = block->own_rows;
    block->scales = block->own_scales;
    repeat_last(block->own_rows, rows, walk->steady.grain);
    if (walk->scaled)
        repeat_last(block->own_scales, block->count, walk->steady.grain);
}

/* The core roof's walk stays on the first `wrap` tokens of the first head, whatever the unit says.
 */
static void block_offsets(const kvb_walk *walk, int64_t first, kvb_block *block)
{
    const kvb_decode *a = walk->args;
    const bool wrapped = a->wrap > 0;
    const int64_t seq = wrapped ? 0 : walk->unit->seq, head = wrapped ? 0 : walk->unit->head;
    const int64_t from = wrapped ? first % a->wrap : first;
    if (wrapped)
        block->count = (int32_t)at_most(block->count, a->wrap - from);
    if (one_stretch(walk, seq, head, from, block))
        return;
    kvb_offsets(a->cache, seq, head, from, block->count, block->own_rows,
                walk->scaled ? block->own_scales : NULL);
    write_down(walk, block, block->count);
}

/* Transposed: tiles begin where a block of K does, with tokens in front that are not the unit's,
 * and end where the slots run on elsewhere. So their lanes are those of the blocks. `left` tokens
 * of the unit are still to come. */
static void block_lanes(const kvb_walk *walk, int64_t token, int64_t left, kvb_block *block)
{
    const kvb_decode *a = walk->args;
    const kvb_cache *c = a->cache;
    const bool wrapped = a->wrap > 0;
    token = wrapped ? token % a->wrap : token;
    left = wrapped ? at_most(left, a->wrap - token) : left;
    int64_t slot = c->ring ? token % c->capacity : token;
    left = c->ring ? at_most(left, c->capacity - slot) : left;
    block->lead = (int32_t)kvb_lane(c, slot);
    block->count = (int32_t)at_most(walk->steady.tokens, block->lead + left);
    int64_t seq = wrapped ? 0 : walk->unit->seq, head = wrapped ? 0 : walk->unit->head;
    if (one_stretch(walk, seq, head, slot, block))
        return;
    kvb_offsets(c, seq, head, slot - block->lead, block->count, block->own_rows,
                walk->scaled ? block->own_scales : NULL);
    for (int32_t t = 0; walk->scaled && t < block->lead; t++)
        block->own_scales[t] = block->own_scales[block->lead];
    int64_t whole = round_up(block->count, LANES);
    for (int64_t t = block->count; t < whole; t++)
        block->own_rows[t] = block->own_rows[t - 1] + c->k.token_stride;
    write_down(walk, block, whole);
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
        block_lanes(walk, token, left, block);
    } else {
        block->lead = 0;
        block->count = (int32_t)at_most(walk->steady.tokens, left);
        block_offsets(walk, token, block);
    }
    walk->token += block->count - block->lead;
}

void kvb_tile_rows(const kvb_decode *a, const kvb_block *block, int64_t head, kvb_tile *tile)
{
    const int64_t shift = block->place + head * a->cache->k.head_stride;
    tile->count = block->count;
    tile->lead = block->lead;
    tile->k_block = kvb_block_bytes(a->cache);
    tile->k = (kvb_places){a->cache->k.rows + shift, block->rows};
    tile->v = (kvb_places){a->cache->v.rows + shift, block->rows};
}

/* Scales in their place, or collected in `to`. */
static const float *scales_at(const kvb_decode *a, const uint8_t *plane, const kvb_block *block,
                              float *to)
{
    const int64_t count = round_up(block->count, LANES);
    if (kvb_scales_in_place(a, block))
        return (const float *)(const void *)plane;
    if (a->cache->k.scale == SCALE_F32) {
        for (int64_t t = 0; t < count; t++)
            to[t] = *(const float *)(const void *)(plane + block->scales[t]);
        return to;
    }
    uint16_t raw[TILE];
    for (int64_t t = 0; t < count; t++)
        raw[t] = *(const uint16_t *)(const void *)(plane + block->scales[t]);
    kvb_tier_of(a->isa)->rows[DTYPE_F16].decode((const uint8_t *)raw, 1.0f, count, to);
    return to;
}

void kvb_tile_scales(const kvb_decode *a, const kvb_block *block, int64_t head, kvb_tile *tile)
{
    const int64_t shift = block->scale + head * a->cache->k.scale_head_stride;
    tile->k_scale = scales_at(a, a->cache->k.scales + shift, block, tile->scales[0]);
    tile->v_scale = scales_at(a, a->cache->v.scales + shift, block, tile->scales[1]);
}
