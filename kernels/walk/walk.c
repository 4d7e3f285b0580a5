#include "walk/walk.h"

static void start_plane(const kvb_plane *plane, int32_t tokens, kvb_plane_walk *w)
{
    for (int64_t t = 0; t < tokens; t++)
        w->rows[t] = t * plane->token_stride;
    for (int64_t t = 0; kvb_scaled(plane) && t < tokens; t++)
        w->scales[t] = t * plane->scale_token_stride;
}

/* Return the plane whose offsets are in K's spot. Planes that are alike share V's, because V may
 * have scales when K has none. */
static const kvb_plane *plane_of_k(const kvb_walk *walk)
{
    return walk->alike ? walk->v.plane : walk->k.plane;
}

void kvb_walk_start(kvb_walk *walk, const kvb_decode *args, const kvb_unit *unit,
                    const kvb_unit *end)
{
    walk->args = args;
    walk->unit = unit;
    walk->end = end;
    walk->token = 0;
    walk->preset = &kvb_presets[args->schedule];
    walk->alike = kvb_planes_alike(args->cache);
    walk->k.plane = &args->cache->k;
    walk->v.plane = &args->cache->v;
    kvb_schedule_make(walk);
    start_plane(plane_of_k(walk), walk->cut.tokens, &walk->k);
    if (!walk->alike)
        start_plane(&args->cache->v, walk->cut.tokens, &walk->v);
    kvb_requests_start(walk);
}

static void repeat_last(int64_t *offsets, int64_t count, int64_t end)
{
    const int64_t last = offsets[count - 1];
    for (int64_t t = count; t < end; t++)
        offsets[t] = last;
}

/* Set the spot of a block that is one stretch. */
static void take_stretch(const kvb_plane_walk *w, kvb_stretch s, kvb_spot *spot)
{
    spot->place = s.row;
    spot->scale = s.scale;
    spot->rows = w->rows;
    spot->scales = w->scales;
}

/* Whether the block's rows, from `token` on, are one stretch: then only its start is stored. The
 * block is cut to the whole grains of the stretch. If the stretch is shorter than a grain, the
 * block is cut to at most one grain, and the result is false. */
static bool one_stretch(const kvb_walk *walk, int64_t seq, int64_t head, int64_t token,
                        kvb_block *block)
{
    const kvb_cache *c = walk->args->cache;
    if (kvb_layouts[c->layout].paged && c->block_tokens < block->count)
        return false;
    const kvb_stretch s = kvb_stretch_of(c, plane_of_k(walk), seq, head, token);
    const int64_t grain = walk->cut.grain,
                  grains = block->lead ? 0 : at_most(block->count, s.count) / grain;
    block->count = (int32_t)(grains ? grains * grain : at_most(block->count, grain));
    take_stretch(&walk->k, s, &block->k);
    if (!walk->alike)
        take_stretch(&walk->v, kvb_stretch_of(c, &c->v, seq, head, token), &block->own_v);
    return grains > 0;
}

/* Write the list of a block's rows in one plane: from lane 0, so `lead` rows come first that do not
 * belong to the unit, and up to the end of the last transposed block. */
static void write_down(const kvb_walk *walk, const kvb_plane *plane, int64_t seq, int64_t head,
                       int64_t token, const kvb_block *block, kvb_spot *spot)
{
    const kvb_cache *c = walk->args->cache;
    const bool scaled = kvb_scaled(plane);
    const int64_t rows =
        kvb_layouts[c->layout].transposed ? round_up(block->count, LANES) : block->count;
    kvb_offsets(c, plane, seq, head, token - block->lead, block->count, spot->own_rows,
                scaled ? spot->own_scales : NULL);
    for (int32_t t = 0; scaled && t < block->lead; t++)
        spot->own_scales[t] = spot->own_scales[block->lead];
    for (int64_t t = block->count; t < rows; t++)
        spot->own_rows[t] = spot->own_rows[t - 1] + plane->token_stride;
    repeat_last(spot->own_rows, rows, walk->cut.grain);
    if (scaled)
        repeat_last(spot->own_scales, block->count, walk->cut.grain);
    spot->place = spot->scale = 0;
    spot->rows = spot->own_rows;
    spot->scales = spot->own_scales;
}

/* For transposed layouts: begin a block at the start of a transposed block (`lead` tokens before
 * the unit's own), and end it at the wrap of a ring. So token t of a tile is in lane t % LANES.
 * `left`: tokens that the unit still has. Returns the slot of `token`. */
static int64_t keep_lanes(const kvb_walk *walk, int64_t token, int64_t left, kvb_block *block)
{
    const kvb_cache *c = walk->args->cache;
    const int64_t slot = c->ring ? token % c->capacity : token;
    left = c->ring ? at_most(left, c->capacity - slot) : left;
    block->lead = (int32_t)kvb_lane(c, slot);
    block->count = (int32_t)at_most(walk->cut.tokens, block->lead + left);
    return slot;
}

/* Return the token of the core roof's window at which the next block begins. Blocks have the sizes
 * of the unit's, whose first token has this `lane`. The window is cut to whole blocks, unless it is
 * shorter than one. */
static int64_t in_window(const kvb_walk *walk, int64_t lane)
{
    const int64_t wrap = walk->args->wrap, step = walk->cut.tokens;
    return (lane + walk->token) % (wrap < step ? wrap : wrap / step * step);
}

/* Set where a block is. For the core roof it is in a window of the first head, whatever the unit.
 * So it is in pages, too: rows of all heads of a page in turn, which are nearer, took 2 to 14 %
 * more time. */
static void place_block(const kvb_walk *walk, int64_t token, int64_t left, kvb_block *block)
{
    const kvb_decode *a = walk->args;
    int64_t seq = walk->unit->seq, head = walk->unit->head;
    if (a->wrap) {
        seq = head = 0;
        token = in_window(walk, kvb_lane(a->cache, walk->unit->first));
        left = at_most(left, a->wrap - token);
    }
    block->lead = 0;
    block->count = (int32_t)at_most(walk->cut.tokens, left);
    if (kvb_layouts[a->cache->layout].transposed)
        token = keep_lanes(walk, token, left, block);
    block->stretch = one_stretch(walk, seq, head, token, block);
    if (block->stretch)
        return;
    write_down(walk, plane_of_k(walk), seq, head, token, block, &block->k);
    if (!walk->alike)
        write_down(walk, walk->v.plane, seq, head, token, block, &block->own_v);
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
    block->first = walk->token;
    block->v = walk->alike ? &block->k : &block->own_v;
    const kvb_unit *unit = walk->unit;
    const bool kept = walk->token < unit->before;
    block->token = kvb_unit_token(unit, walk->token);
    place_block(walk, block->token, (kept ? unit->before : unit->count) - walk->token, block);
    walk->token += block->count - block->lead;
}

static void side_rows(const kvb_plane *plane, const kvb_spot *spot, int64_t head, kvb_side *side)
{
    const int64_t shift = spot->place + head * plane->head_stride;
    side->rows = (kvb_places){plane->rows + shift, spot->rows};
    side->bytes = plane->row_bytes;
    side->cell = plane->cell;
    side->block = kvb_block_bytes(plane);
}

void kvb_tile_rows(const kvb_walk *walk, const kvb_block *block, int64_t head, kvb_tile *tile)
{
    tile->count = block->count;
    tile->lead = block->lead;
    tile->first = block->token - block->lead;
    side_rows(walk->k.plane, &block->k, head, &tile->k);
    side_rows(walk->v.plane, block->v, head, &tile->v);
}

/* Return a tile's scales: in place, or copied to `to` as float32. */
static const float *scales_at(const kvb_walk *walk, const kvb_plane *plane, const kvb_block *block,
                              const kvb_spot *spot, int64_t head, float *to)
{
    const int64_t count = round_up(block->count, LANES);
    const uint8_t *from = plane->scales + spot->scale + head * plane->scale_head_stride;
    if (kvb_scales_in_place(plane, block))
        return (const float *)(const void *)from;
    if (plane->scale == SCALE_F32) {
        for (int64_t t = 0; t < count; t++)
            to[t] = *(const float *)(const void *)(from + spot->scales[t]);
        return to;
    }
    uint16_t raw[TILE];
    for (int64_t t = 0; t < count; t++)
        raw[t] = *(const uint16_t *)(const void *)(from + spot->scales[t]);
    kvb_tier_of(walk->args->isa)->codecs[DTYPE_F16].decode((const uint8_t *)raw, 1.0f, count, to);
    return to;
}

void kvb_tile_scales(const kvb_walk *walk, const kvb_block *block, int64_t head, kvb_tile *tile)
{
    const kvb_plane *k = walk->k.plane, *v = walk->v.plane;
    tile->k.scale = tile->v.scale = NULL;
    if (kvb_scaled(k))
        tile->k.scale = scales_at(walk, k, block, &block->k, head, tile->scales[0]);
    if (kvb_scaled(v))
        tile->v.scale = scales_at(walk, v, block, block->v, head, tile->scales[1]);
}
