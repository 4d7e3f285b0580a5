/* Chooses the rows that stages prefetch while they read a tile, by preset and plane. */
#include "walk/walk.h"

/* ---- lists of rows --------------------------------------------------------------------------- */

/* Return how many rows a list entry has at least: the rows of a transposed block belong together.
 */
static int64_t together(const kvb_walk *walk)
{
    return kvb_layouts[walk->args->cache->layout].quads ? LANES : 1;
}

/* Return into how many runs to cut `count` rows of a plane; a run is at least a page. Lines of the
 * runs are prefetched in turn: a core that reads several pages side by side keeps more of memory
 * busy than one that reads page after page. */
static int64_t runs_of(const kvb_walk *walk, const kvb_plane *p, int64_t count, int64_t planes)
{
    int64_t runs = 1;
    while (runs < walk->preset->streams / planes && 2 * runs * PAGE <= count * p->row_bytes &&
           count % (2 * planes * runs * together(walk)) == 0)
        runs *= 2;
    return runs;
}

/* Write to `to` a head's share of a block's rows in a plane: `count` rows for each of `heads`. The
 * order is that of addresses, or run after run in turn. Returns the number of runs. */
static int64_t share_of_plane(const kvb_walk *walk, const kvb_plane *p, const int64_t *rows,
                              int64_t heads, int64_t head, int64_t count, int64_t *to)
{
    const int64_t runs = runs_of(walk, p, heads * count, 1), tokens = count / runs;
    const int64_t step = together(walk); /* above 1 only with one head */
    int64_t row = head * tokens, token = row / heads, in = row % heads; /* within a run */
    for (int64_t t = 0; t < count / step;) {
        for (int64_t run = 0; run < runs; run++)
            to[t++] = in * p->head_stride + rows[run * tokens + token];
        if (++in == heads) {
            in = 0;
            token += step;
        }
    }
    return runs;
}

/* Whether the rows of each run, of all heads, follow each other without a gap. In a paged cache, a
 * run that is not longer than a block has at most one gap, so it is enough to compare its ends. */
static bool in_one_piece(const kvb_walk *walk, const kvb_plane *p, const int64_t *rows,
                         int64_t heads, int64_t runs, int64_t tokens)
{
    const kvb_cache *c = walk->args->cache;
    const int64_t step = together(walk), read = step > 1 ? kvb_block_bytes(p) : p->row_bytes;
    if (p->token_stride != heads * p->row_bytes || (heads > 1 && p->head_stride != p->row_bytes) ||
        read != step * p->row_bytes || read % LINE)
        return false;
    if (kvb_layouts[c->layout].paged && tokens > c->block_tokens)
        return false;
    for (int64_t run = 0; run < runs; run++)
        if (rows[run * tokens + tokens - 1] - rows[run * tokens] != (tokens - 1) * p->token_stride)
            return false;
    return true;
}

/* Write lists with rows of K and V in turn, and in each plane from run after run in turn, as
 * offsets from the start of K. QK prefetches one half of the rows, PV the other. The planes are
 * alike. */
static void weave_planes(const kvb_walk *walk, const int64_t *rows, int64_t count, kvb_lists *to,
                         kvb_asked *asked)
{
    const kvb_cache *c = walk->args->cache;
    const int64_t runs = runs_of(walk, &c->k, count, PLANES), tokens = count / runs,
                  step = together(walk), half = at_least(step, tokens / 2 / step * step);
    const int64_t to_v = (int64_t)((uintptr_t)c->v.rows - (uintptr_t)c->k.rows);
    asked->streams = PLANES * runs;
    asked->rows_per_entry = in_one_piece(walk, &c->k, rows, 1, runs, tokens) ? half : step;
    for (int64_t token = 0, at = 0; token < half; token += asked->rows_per_entry)
        for (int64_t run = 0; run < runs; run++, at += 2) {
            const int64_t row = run * tokens + token;
            to->k[at] = rows[row];
            to->k[at + 1] = rows[row] + to_v;
            to->v[at] = rows[row + tokens - half];
            to->v[at + 1] = rows[row + tokens - half] + to_v;
        }
}

/* Return what to prefetch: what the preset says, or ASKS_OWN if planes differ or are walked apart,
 * or if there are several heads. */
static int32_t asks_of(const kvb_walk *walk, int64_t heads, bool apart)
{
    const int32_t asks = walk->preset->asks;
    const bool apart_anyway = asks == ASKS_ACROSS && together(walk) > 1;
    return asks == ASKS_NOTHING || (walk->alike && heads == 1 && !apart && !apart_anyway)
               ? asks
               : ASKS_OWN;
}

void kvb_requests_start(kvb_walk *walk)
{
    const int64_t heads = walk->unit < walk->end ? walk->unit->heads : 1;
    if (asks_of(walk, heads, false) == ASKS_WOVEN) {
        weave_planes(walk, walk->k.rows, walk->cut.tokens, &walk->lists, &walk->usual[KVB_K]);
        return;
    }
    if (heads > 1)
        walk->usual[KVB_K].streams = share_of_plane(walk, walk->k.plane, walk->k.rows, heads, 0,
                                                    walk->cut.tokens, walk->lists.k);
    if (heads > 1 && !walk->alike)
        walk->usual[KVB_V].streams = share_of_plane(walk, walk->v.plane, walk->v.rows, heads, 0,
                                                    walk->cut.tokens, walk->lists.v);
}

/* ---- a function for each kind of prefetch ---------------------------------------------------- */

/* Prefetch the lines of a plane's scales that a tile of this head reads. If heads share a line, the
 * first head prefetches it. */
static void fetch_scales(const kvb_cache *c, const kvb_plane *p, const kvb_block *block,
                         const kvb_spot *spot, int64_t head)
{
    const int64_t shift = head * p->scale_head_stride;
    if (!kvb_scaled(p) || (kvb_heads_inner(c) && shift % LINE))
        return;
    const int64_t each = at_least(1, LINE / p->scale_token_stride);
    for (int64_t t = 0; t < block->count; t += each)
        __builtin_prefetch(p->scales + spot->scales[t] + shift + spot->scale);
}

/* Let a plane prefetch a head's share of a later block in the same plane (all of it, for one head).
 * `usual`: the walk's list of shares; a new list is written to `list`. If planes are alike, V gets
 * the same as K. Both are written here: copying K's just after it was written stalled the core. */
static void ask_share(const kvb_walk *walk, const kvb_block *block, const kvb_block *later,
                      int64_t head, int32_t plane, const int64_t *usual, int64_t *list,
                      kvb_tile *tile)
{
    const kvb_cache *c = walk->args->cache;
    const kvb_plane *p = kvb_plane_of(c, plane);
    const kvb_spot *spot = plane == KVB_K ? &later->k : later->v;
    const int64_t heads = later->unit->heads, count = round_up(block->count, LANES);
    const int64_t *at = spot->rows;
    int64_t from = spot->place, streams = 1, each = together(walk);
    if (walk->preset->in_order && in_one_piece(walk, p, spot->rows, heads, 1, count)) {
        from += head * count * p->row_bytes;
        each = count;
    } else if (heads > 1 && later->stretch) { /* heads are side by side, and so are their shares */
        at = usual;
        streams = walk->usual[plane].streams;
        from += head * (walk->cut.tokens / streams) * p->head_stride;
    } else if (heads > 1 || walk->preset->streams > 1 || each > 1) {
        at = list;
        streams = share_of_plane(walk, p, spot->rows, heads, head, count, list);
    }
    if (plane == KVB_K)
        tile->k.asked = (kvb_asked){{c->k.rows + from, at}, streams, each};
    if (plane == KVB_V || walk->alike)
        tile->v.asked = (kvb_asked){{c->v.rows + from, at}, streams, each};
}

static void ask_woven(const kvb_walk *walk, const kvb_block *block, const kvb_block *later,
                      kvb_tile *tile, kvb_lists *lists)
{
    const uint8_t *from = walk->args->cache->k.rows + later->k.place;
    const kvb_lists *rows = &walk->lists;
    kvb_asked asked = walk->usual[KVB_K];
    if (!later->stretch) {
        rows = lists;
        weave_planes(walk, later->k.rows, round_up(block->count, LANES), lists, &asked);
    }
    tile->k.asked = tile->v.asked = asked;
    tile->k.asked.rows = (kvb_places){from, rows->k};
    tile->v.asked.rows = (kvb_places){from, rows->v};
}

/* QK prefetches V of this tile, PV prefetches K of the next tile. */
static void ask_across(const kvb_walk *walk, const kvb_block *block, const kvb_block *later,
                       kvb_tile *tile)
{
    const kvb_cache *c = walk->args->cache;
    tile->k.asked.rows = (kvb_places){c->v.rows + block->v->place, block->v->rows};
    tile->v.asked.rows = (kvb_places){c->k.rows + later->k.place, later->k.rows};
}

/* Return the row to touch after the last row of a tile. Hardware prefetchers follow rows that are
 * read in address order. They need help only at page ends: the same plane, one block further on. At
 * the end of a head these rows belong to another head; prefetching the head that comes next
 * instead, a block ahead, took up to 9 % more time. If the next block is unknown, they are the
 * tile's own rows again. */
static const uint8_t *further(const kvb_side *side, const kvb_spot *spot, const kvb_block *next,
                              const kvb_spot *then)
{
    return side->rows.from + (next->unit && next->stretch ? then->place - spot->place : 0);
}

/* Each plane prefetches its own rows. But after the last row of K of a tile comes V, and then K of
 * the next tile, unless the planes are walked `apart`. */
static void ask_own(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                    int64_t head, bool apart, kvb_tile *tile, kvb_lists *lists)
{
    const kvb_block *later = next->unit ? next : block;
    const uint8_t *k = further(&tile->k, &block->k, next, &next->k);
    tile->k.then = apart ? k : tile->v.rows.from;
    tile->v.then = apart ? further(&tile->v, block->v, next, next->v) : k;
    const bool k_listed = tile->k.schedule->order < ORDER_ROWS,
               v_listed = tile->v.schedule->order < ORDER_ROWS;
    if (k_listed)
        ask_share(walk, block, later, head, KVB_K, walk->lists.k, lists->k, tile);
    if (v_listed && !(k_listed && walk->alike))
        ask_share(walk, block, later, head, KVB_V, walk->lists.v, lists->v, tile);
}

/* ---- the tile -------------------------------------------------------------------------------- */

static void start_side(const kvb_plane_walk *w, const kvb_block *block, kvb_side *side)
{
    side->schedule = block->stretch ? &w->steady : &w->rest;
    side->asked.streams = side->asked.rows_per_entry = 1;
}

void kvb_tile_requests(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                       int64_t head, bool apart, kvb_tile *tile, kvb_lists *lists)
{
    const kvb_block *later = next->unit ? next : block;
    const int32_t asks = asks_of(walk, block->unit->heads, apart);
    start_side(&walk->k, block, &tile->k);
    start_side(&walk->v, block, &tile->v);
    if (asks == ASKS_NOTHING)
        return;
    /* scales of rows in address order: those of this block, for QK of a long block takes longer
     * than their arrival. Prefetched a block ahead they cost 3 % of all time */
    const kvb_block *of_k = tile->k.schedule->order >= ORDER_ROWS ? block : later,
                    *of_v = tile->v.schedule->order >= ORDER_ROWS ? block : later;
    fetch_scales(walk->args->cache, walk->k.plane, of_k, &of_k->k, head);
    fetch_scales(walk->args->cache, walk->v.plane, of_v, of_v->v, head);
    if (asks == ASKS_WOVEN)
        ask_woven(walk, block, later, tile, lists);
    else if (asks == ASKS_ACROSS)
        ask_across(walk, block, later, tile);
    else
        ask_own(walk, block, next, head, apart || !walk->alike, tile, lists);
}
