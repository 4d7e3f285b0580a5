/* Which rows the stages ask for while they consume a tile, as its schedule says. */
#include "walk/walk.h"

/* Runs of a block's rows in a plane that are taken in turn, at least a page each: a core that reads
 * several pages side by side keeps more of memory busy than one that reads them one after another.
 */
static int64_t runs_of(const kvb_walk *walk, int64_t rows, int64_t planes)
{
    int64_t runs = 1;
    while (runs < walk->steady.streams / planes &&
           2 * runs * PAGE <= rows * walk->args->cache->k.row_bytes)
        runs *= 2;
    return runs;
}

/* A head's share of the rows that a block has in a plane: `count` for each of `heads`, in address
 * order, or from one run after another in turn. Returns how many lie side by side. */
static int64_t share_of_plane(const kvb_walk *walk, const int64_t *rows, int64_t heads,
                              int64_t head, int64_t count, int64_t *to)
{
    const int64_t runs = runs_of(walk, heads * count, 1), tokens = count / runs;
    int64_t row = head * tokens, token = row / heads, in = row % heads; /* within a run */
    for (int64_t t = 0; t < count;) {
        for (int64_t run = 0; run < runs; run++)
            to[t++] = in * walk->args->cache->k.head_stride + rows[run * tokens + token];
        if (++in == heads) {
            in = 0;
            token++;
        }
    }
    return runs;
}

/* Whether the rows of each run, those of all heads, lie one behind another, without a gap. One of a
 * paged cache that is no longer than a block has at most one place where they do not, so its ends
 * tell. */
static bool in_one_piece(const kvb_cache *c, const int64_t *rows, int64_t heads, int64_t runs,
                         int64_t tokens)
{
    if (c->k.token_stride != heads * c->k.row_bytes ||
        (heads > 1 && c->k.head_stride != c->k.row_bytes) || c->k.row_bytes % LINE)
        return false;
    if (kvb_layouts[c->layout].paged && tokens > c->block_tokens)
        return false;
    for (int64_t run = 0; run < runs; run++)
        if (rows[run * tokens + tokens - 1] - rows[run * tokens] !=
            (tokens - 1) * c->k.token_stride)
            return false;
    return true;
}

/* Rows of K and V in turn, and of each plane from one run after another, from where K is on: half
 * of them for QK, half for PV. */
static void weave_planes(const kvb_walk *walk, const int64_t *rows, int64_t count, kvb_lists *to,
                         kvb_requests *next)
{
    const kvb_cache *c = walk->args->cache;
    const int64_t runs = runs_of(walk, count, 2), tokens = count / runs, half = tokens / 2;
    const int64_t to_v = (int64_t)((uintptr_t)c->v.rows - (uintptr_t)c->k.rows);
    next->streams = 2 * runs;
    next->rows_per_entry = in_one_piece(c, rows, 1, runs, tokens) ? half : 1;
    for (int64_t token = 0, at = 0; token < half; token += next->rows_per_entry)
        for (int64_t run = 0; run < runs; run++, at += 2) {
            const int64_t row = run * tokens + token;
            to->k[at] = rows[row];
            to->k[at + 1] = rows[row] + to_v;
            to->v[at] = rows[row + half];
            to->v[at + 1] = rows[row + half] + to_v;
        }
}

void kvb_requests_start(kvb_walk *walk)
{
    const int64_t heads = walk->unit < walk->end ? walk->unit->heads : 1;
    walk->woven = walk->steady.streams > 1 && heads == 1;
    if (walk->woven)
        weave_planes(walk, walk->rows, walk->steady.tokens, &walk->lists, &walk->usual);
    else if (heads > 1)
        walk->usual.streams =
            share_of_plane(walk, walk->rows, heads, 0, walk->steady.tokens, walk->lists.k);
}

/* The lines of scales that a tile of this head reads. Of heads that share a line, the first fetches
 * it. */
static void fetch_scales(const kvb_decode *a, const kvb_block *block, int64_t head)
{
    const kvb_cache *c = a->cache;
    int64_t shift = head * c->k.scale_head_stride,
            each = at_least(1, LINE / c->k.scale_token_stride);
    if (kvb_heads_inner(c) && shift % LINE)
        return;
    shift += block->scale;
    for (int64_t t = 0; t < block->count; t += each) {
        __builtin_prefetch(c->k.scales + block->scales[t] + shift);
        __builtin_prefetch(c->v.scales + block->scales[t] + shift);
    }
}

/* Of both planes what lies at the same places: a head's share of a later block. Of one head that is
 * all of it. */
static void ask_share(const kvb_walk *walk, const kvb_block *block, const kvb_block *later,
                      int64_t head, kvb_tile *tile, kvb_lists *lists)
{
    const kvb_cache *c = walk->args->cache;
    kvb_requests *next = &tile->next;
    const int64_t *at = later->rows, heads = later->unit->heads,
                  count = round_up(block->count, LANES);
    int64_t from = later->place;
    if (walk->preset->in_order && in_one_piece(c, later->rows, heads, 1, count)) {
        from += head * count * c->k.row_bytes;
        next->rows_per_entry = count;
    } else if (heads > 1 && later->rows == walk->rows) { /* heads lie side by side, so shares do */
        at = walk->lists.k;
        next->streams = walk->usual.streams;
        from += head * (walk->steady.tokens / next->streams) * c->k.head_stride;
    } else if (heads > 1 || walk->steady.streams > 1) {
        at = lists->k;
        next->streams = share_of_plane(walk, later->rows, heads, head, count, lists->k);
    }
    next->k = (kvb_places){c->k.rows + from, at};
    next->v = (kvb_places){c->v.rows + from, at};
}

static void ask_woven(const kvb_walk *walk, const kvb_block *block, const kvb_block *later,
                      kvb_tile *tile, kvb_lists *lists)
{
    const uint8_t *from = walk->args->cache->k.rows + later->place;
    const kvb_lists *rows = &walk->lists;
    if (later->rows == walk->rows) {
        tile->next.streams = walk->usual.streams;
        tile->next.rows_per_entry = walk->usual.rows_per_entry;
    } else {
        rows = lists;
        weave_planes(walk, later->rows, round_up(block->count, LANES), lists, &tile->next);
    }
    tile->next.k = (kvb_places){from, rows->k};
    tile->next.v = (kvb_places){from, rows->v};
}

/* What is read one row after another, the hardware's prefetchers run ahead of. They need no more
 * than this where a page ends: the tile's own rows, so much further on; and so where the head ends,
 * though others lie there. Asking for the next one's instead, a block ahead, took up to 9 % more
 * time. Behind K of a tile V is read, and then the next tile's K, or where that is not known the
 * tile's own once more. */
static void ask_further(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                        bool one_plane, kvb_tile *tile)
{
    const bool steady = next->unit && next->rows == walk->rows;
    const int64_t to_next = steady ? next->place - block->place : 0;
    const uint8_t *k = tile->k.from + to_next, *v = tile->v.from + to_next;
    tile->stride = walk->args->cache->k.row_bytes;
    tile->next.k = (kvb_places){one_plane ? k : tile->v.from, block->rows};
    tile->next.v = (kvb_places){one_plane ? v : k, block->rows};
}

/* QK fetches V of this tile, PV the next tile's K. */
static void ask_crossed(const kvb_walk *walk, const kvb_block *block, const kvb_block *later,
                        kvb_tile *tile)
{
    tile->next.k = (kvb_places){walk->args->cache->v.rows + block->place, block->rows};
    tile->next.v = (kvb_places){walk->args->cache->k.rows + later->place, later->rows};
}

void kvb_tile_requests(const kvb_walk *walk, const kvb_block *block, const kvb_block *next,
                       int64_t head, bool one_plane, kvb_tile *tile, kvb_lists *lists)
{
    const kvb_block *later = next->unit ? next : block;
    tile->schedule = block->rows == walk->rows ? &walk->steady : &walk->rest;
    tile->next.streams = tile->next.rows_per_entry = 1;
    const int32_t order = tile->schedule->order;
    if (order == ORDER_PLAIN)
        return;
    const bool further = order == ORDER_ROWS || order == ORDER_RUNS;
    /* QK of a long block takes longer than they do; asked for a block ahead they took 3 % more in
     * all */
    if (walk->scaled)
        fetch_scales(walk->args, further ? block : later, head);
    if (further)
        ask_further(walk, block, next, one_plane, tile);
    else if (one_plane || block->unit->heads > 1 || walk->preset->in_order)
        ask_share(walk, block, later, head, tile, lists);
    else if (walk->woven)
        ask_woven(walk, block, later, tile, lists);
    else
        ask_crossed(walk, block, later, tile);
}
