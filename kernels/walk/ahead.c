/* Which rows are prefetched while a tile is consumed: the scheme `prefetch` of a decode. */
#include "walk/walk.h"

/* Runs of a block's rows in a plane that are taken in turn: at least a page each, and eight in all planes. Prefetchers in
 * hardware follow a page at a time, and do not cross into the next: a core that reads several side by side keeps more of
 * memory busy than one that reads them one after another. */
static int64_t runs_of(const kvb_decode *a, int64_t rows, int64_t planes)
{
    enum { PAGE = 4096, SIDE = 8 };
    int64_t runs = 1;
    while (a->prefetch == PREFETCH_WEAVE && runs < SIDE / planes && 2 * runs * PAGE <= rows * a->cache->row_bytes)
        runs *= 2;
    return runs;
}

/* A head's share of the rows that a block has in a plane: `count` for each of `heads`, in address order, or from one run
 * after another in turn. Returns how many lie side by side. */
static int64_t share_of_plane(const kvb_decode *a, const int64_t *rows, int64_t heads, int64_t head, int64_t count,
                              int64_t *to)
{
    const int64_t runs = runs_of(a, heads * count, 1), tokens = count / runs;
    int64_t row = head * tokens, token = row / heads, in = row % heads; /* within a run */
    for (int64_t t = 0; t < count;) {
        for (int64_t run = 0; run < runs; run++)
            to[t++] = in * a->cache->head_stride + rows[run * tokens + token];
        if (++in == heads) {
            in = 0;
            token++;
        }
    }
    return runs;
}

/* Whether the rows of each run, those of all heads, lie one behind another, without a gap. One of a paged cache that is
 * no longer than a block has at most one place where they do not, so its ends tell. */
static bool in_one_piece(const kvb_cache *c, const int64_t *rows, int64_t heads, int64_t runs, int64_t tokens)
{
    if (c->token_stride != heads * c->row_bytes || (heads > 1 && c->head_stride != c->row_bytes) || c->row_bytes % LINE)
        return false;
    if (kvb_layouts[c->layout].paged && tokens > c->block_tokens)
        return false;
    for (int64_t run = 0; run < runs; run++)
        if (rows[run * tokens + tokens - 1] - rows[run * tokens] != (tokens - 1) * c->token_stride)
            return false;
    return true;
}

/* Rows of K and V in turn, and of each plane from one run after another, from where K is on: half of them for QK, half
 * for PV. Returns how many lie side by side; in `each`, how many in one piece an entry stands for. */
static int64_t weave_planes(const kvb_decode *a, const int64_t *rows, int64_t count, kvb_ahead *to, int64_t *each)
{
    const int64_t runs = runs_of(a, count, 2), tokens = count / runs, half = tokens / 2;
    const int64_t apart = (int64_t)((uintptr_t)a->cache->v - (uintptr_t)a->cache->k);
    *each = in_one_piece(a->cache, rows, 1, runs, tokens) ? half : 1;
    for (int64_t token = 0, at = 0; token < half; token += *each)
        for (int64_t run = 0; run < runs; run++, at += 2) {
            const int64_t row = run * tokens + token;
            to->k[at] = rows[row];
            to->k[at + 1] = rows[row] + apart;
            to->v[at] = rows[row + half];
            to->v[at + 1] = rows[row + half] + apart;
        }
    return 2 * runs;
}

/* Groups of so many write down more sums behind each run of rows. */
static bool many_heads(const kvb_decode *a) { return a->q_heads / a->cache->kv_heads > 4; }

/* Rows of a run: what L1 has room for beside the next run, in few rows. Twice as many for many heads. */
static int64_t reach_of(const kvb_decode *a, int64_t count)
{
    enum { RUN = 8192, ROWS = 2 * LANES };
    const int64_t times = many_heads(a) ? 2 : 1;
    const int64_t rows = times * at_least(LANES, at_most(ROWS, RUN / a->cache->row_bytes / LANES * LANES));
    return count % rows ? LANES : rows;
}

void kvb_ahead_start(kvb_walk *walk)
{
    const int64_t heads = walk->unit < walk->end ? walk->unit->heads : 1;
    walk->reach = reach_of(walk->args, walk->step);
    walk->woven = walk->args->prefetch == PREFETCH_WEAVE && heads == 1;
    if (walk->woven)
        walk->side = weave_planes(walk->args, walk->rows, walk->step, &walk->steady, &walk->each);
    else if (heads > 1)
        walk->side = share_of_plane(walk->args, walk->rows, heads, 0, walk->step, walk->steady.k);
}

/* The lines of scales that a tile of this head reads. Of heads that share a line, the first fetches it. */
static void scales_ahead(const kvb_decode *a, const kvb_block *block, int64_t head)
{
    const kvb_cache *c = a->cache;
    int64_t shift = head * c->scale_head_stride, each = at_least(1, LINE / c->scale_token_stride);
    if (kvb_heads_inner(c) && shift % LINE)
        return;
    shift += block->scale;
    for (int64_t t = 0; t < block->count; t += each) {
        __builtin_prefetch(c->k_scale + block->scales[t] + shift);
        __builtin_prefetch(c->v_scale + block->scales[t] + shift);
    }
}

/* The rows `distance` bytes further in this unit, and at its end those of the next block. */
static void rows_near(const kvb_decode *a, const kvb_block *block, const kvb_block *later, int64_t head,
                      kvb_tile *tile, kvb_ahead *ahead)
{
    const kvb_cache *c = a->cache;
    const int64_t count = round_up(block->count, LANES), last = round_up(later->count, LANES) - 1;
    const int64_t skip = at_most(TILE, (a->distance + c->row_bytes - 1) / c->row_bytes);
    for (int64_t t = 0; t < count; t++) {
        int64_t at = t + skip;
        ahead->k[t] = at < block->count ? block->place + block->rows[at]
                                        : later->place + later->rows[at_most(at - block->count, last)];
    }
    tile->k_ahead = (kvb_places){c->k + head * c->head_stride, ahead->k};
    tile->v_ahead = (kvb_places){c->v + head * c->head_stride, ahead->k};
}

/* Of rows that are taken one after another: how many lines at a time, so that a cursor seldom has to look further. 0 for
 * rows that do not begin on a line. */
static int64_t turn_of(const kvb_cache *c, int64_t each)
{
    enum { LONGEST = 8 };
    int64_t turn = c->row_bytes % LINE ? 0 : LONGEST;
    while (turn && c->row_bytes / LINE * each % turn)
        turn /= 2;
    return turn;
}

/* Of both planes what lies at the same places: a head's share of a later block. Of one head that is all of it. */
static void share_ahead(const kvb_walk *walk, const kvb_block *block, const kvb_block *later, int64_t head,
                        kvb_tile *tile, kvb_ahead *ahead)
{
    enum { RUN = 8 }; /* of scattered rows, where halves of a whole tile took up to 18 % longer */
    const kvb_decode *a = walk->args;
    const int64_t *at = later->rows, heads = later->unit->heads, count = round_up(block->count, LANES);
    int64_t from = later->place;
    if (tile->far && in_one_piece(a->cache, later->rows, heads, 1, count)) {
        from += head * count * a->cache->row_bytes;
        tile->each = count;
    } else if (heads > 1 && later->rows == walk->rows) { /* heads lie side by side, so shares do */
        at = walk->steady.k;
        tile->side = walk->side;
        from += head * (walk->step / walk->side) * a->cache->head_stride;
    } else if (heads > 1 || a->prefetch == PREFETCH_WEAVE) {
        at = ahead->k;
        tile->side = share_of_plane(a, later->rows, heads, head, count, ahead->k);
    }
    if (tile->far)
        tile->turn = turn_of(a->cache, tile->each);
    if (tile->far && block->rows != walk->rows && !many_heads(a))
        tile->reach = RUN;
    tile->k_ahead = (kvb_places){a->cache->k + from, at};
    tile->v_ahead = (kvb_places){a->cache->v + from, at};
}

static void woven_ahead(const kvb_walk *walk, const kvb_block *block, const kvb_block *later, kvb_tile *tile,
                        kvb_ahead *ahead)
{
    const uint8_t *from = walk->args->cache->k + later->place;
    const kvb_ahead *rows = &walk->steady;
    tile->side = walk->side;
    tile->each = walk->each;
    if (later->rows != walk->rows) {
        rows = ahead;
        tile->side = weave_planes(walk->args, later->rows, round_up(block->count, LANES), ahead, &tile->each);
    }
    tile->k_ahead = (kvb_places){from, rows->k};
    tile->v_ahead = (kvb_places){from, rows->v};
}

/* What is read one row after another, the hardware's prefetchers run ahead of. They need no more than this where a page ends:
 * the tile's own rows, so much further on; and so where the head ends, though others lie there. Asking for the next one's
 * instead, a block ahead, took up to 9 % more time. Behind K of a tile V is read, and then the next tile's K, or where
 * that is not known the tile's own once more. */
static void rows_further_on(const kvb_walk *walk, const kvb_block *block, const kvb_block *next, bool one_plane,
                            kvb_tile *tile)
{
    enum { FURTHER = 6144 };
    const kvb_cache *c = walk->args->cache;
    const bool longer = walk->whole && walk->args->q_heads / c->kv_heads > FEW_HEADS;
    const bool steady = next->unit && next->rows == walk->rows;
    const int64_t to_next = steady ? next->place - block->place : 0;
    const uint8_t *k = tile->k.from + to_next, *v = tile->v.from + to_next;
    tile->stride = c->row_bytes;
    tile->apart = longer ? 2 * FURTHER : FURTHER;
    tile->heads = walk->heads;
    tile->reach = walk->reach;
    tile->k_ahead = (kvb_places){one_plane ? k : tile->v.from, block->rows};
    tile->v_ahead = (kvb_places){one_plane ? v : k, block->rows};
}

/* QK fetches V of this tile, PV the next tile's K. */
static void cross_ahead(const kvb_walk *walk, const kvb_block *block, const kvb_block *later, kvb_tile *tile)
{
    tile->k_ahead = (kvb_places){walk->args->cache->v + block->place, block->rows};
    tile->v_ahead = (kvb_places){walk->args->cache->k + later->place, later->rows};
}

void kvb_tile_ahead(const kvb_walk *walk, const kvb_block *block, const kvb_block *next, int64_t head, bool one_plane,
                    kvb_tile *tile, kvb_ahead *ahead)
{
    const kvb_block *later = next->unit ? next : block;
    tile->k_ahead.at = tile->v_ahead.at = NULL;
    tile->each = tile->side = tile->heads = 1;
    tile->turn = tile->stride = tile->apart = tile->reach = 0;
    tile->far = walk->args->prefetch == PREFETCH_STREAM;
    if (walk->args->prefetch == PREFETCH_OFF)
        return;
    const bool row_by_row = walk->row_by_row && block->rows == walk->rows;
    if (walk->scaled) /* QK of a long block takes longer than they do; asked for a block ahead they took 3 % more in all */
        scales_ahead(walk->args, row_by_row ? block : later, head);
    if (walk->args->prefetch == PREFETCH_NEAR)
        rows_near(walk->args, block, later, head, tile, ahead);
    else if (row_by_row)
        rows_further_on(walk, block, next, one_plane, tile);
    else if (one_plane || block->unit->heads > 1 || tile->far)
        share_ahead(walk, block, later, head, tile, ahead);
    else if (walk->woven)
        woven_ahead(walk, block, later, tile, ahead);
    else
        cross_ahead(walk, block, later, tile);
}
