/* Counts the bytes and lines that a pass touches in a cache, each once. Every buffer counts as if
 * it began on a line. */
#include <stdlib.h>
#include <string.h>

#include "cache/touched.h"

double kvb_tokens(const kvb_touched *t)
{
    double tokens = 0.0;
    for (int64_t b = 0; b < t->cache->batch; b++) {
        const kvb_reach reach = t->tokens_of(t, b);
        tokens += (double)kvb_reached(&reach);
    }
    return tokens;
}

double kvb_scale_size(const kvb_plane *p) { return kvb_scaled(p) ? kvb_scale_bytes[p->scale] : 0; }

double kvb_row_size(const kvb_plane *p) { return (double)kvb_payload(p->dtype, p->dim); }

static bool packed(const kvb_plane *p) { return kvb_formats[p->dtype].elements > 1; }

/* ---- lines ----------------------------------------------------------------------------------- */

double kvb_lines_on(int64_t from, int64_t to, int64_t *next)
{
    int64_t first = at_least(*next, from / LINE), end = (to + LINE - 1) / LINE;
    if (from >= to || end <= first)
        return 0.0;
    *next = end;
    return (double)(end - first);
}

/* Mark the lines of a plane that one sequence and KV head touches, in rows or in scales. */
static void mark(const kvb_touched *t, const kvb_plane *p, int64_t seq, int64_t head,
                 bool of_scales, int64_t bytes, uint8_t *marks)
{
    int64_t rows[TILE], scales[TILE];
    const int64_t *from = of_scales ? scales : rows;
    const kvb_reach reach = t->tokens_of(t, seq);
    for (int64_t at = 0, count; at < kvb_reached(&reach); at += count) {
        count = at_most(TILE, kvb_in_a_row(&reach, at));
        kvb_offsets(t->cache, p, seq, head, kvb_nth(&reach, at), count, rows, scales);
        for (int64_t i = 0; i < count; i++)
            for (int64_t line = from[i] / LINE; rows[i] >= 0 && line * LINE < from[i] + bytes;
                 line++)
                marks[line] = 1;
    }
}

/* Mark what a store of one token writes in a transposed block of packed rows: scales, and the cells
 * of its codes. */
static void mark_token(const kvb_plane *p, int64_t block, int64_t lane, uint8_t *marks)
{
    const int64_t packs = p->row_bytes / kvb_formats[p->dtype].bytes;
    for (int64_t pack = 0; pack < packs; pack++)
        marks[(block + kvb_place_of_scale(lane, pack)) / LINE] = 1;
    for (int64_t j = 0; j < packs * kvb_pack_codes(p->dtype); j += p->cell)
        marks[(block + kvb_place_of(p->dtype, p->cell, p->dim, lane, j)) / LINE] = 1;
}

/* Mark the lines of such blocks that one sequence and KV head touches. Reads take whole blocks. */
static void mark_blocks(const kvb_touched *t, const kvb_plane *p, int64_t seq, int64_t head,
                        uint8_t *marks)
{
    const kvb_reach reach = t->tokens_of(t, seq);
    for (int64_t at = 0, row; at < kvb_reached(&reach); at++) {
        const int64_t token = kvb_nth(&reach, at), lane = kvb_lane(t->cache, token);
        kvb_offsets(t->cache, p, seq, head, token, 1, &row, NULL);
        const int64_t block = row - lane * p->row_bytes, behind = block + LANES * p->row_bytes;
        if (t->stores)
            mark_token(p, block, lane, marks);
        for (int64_t line = block / LINE; !t->stores && line * LINE < behind; line++)
            marks[line] = 1;
    }
}

/* Count the lines of a plane's scales or packed rows. Neighbours of any head, block or sequence
 * share lines, and blocks are in any order: so each line is marked. */
static int32_t shared_lines(const kvb_touched *t, const kvb_plane *p, bool of_scales, double *lines)
{
    const kvb_cache *c = t->cache;
    int64_t all = (of_scales ? p->scale_bytes : p->bytes) / LINE;
    int64_t bytes = of_scales ? (int64_t)kvb_scale_size(p) : p->row_bytes;
    uint8_t *marks = calloc((size_t)all, 1);
    *lines = 0.0;
    if (!marks)
        return kvb_fail(KVB_NO_MEMORY, "no memory to count lines");
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->kv_heads; h++)
            if (p->cell && !of_scales)
                mark_blocks(t, p, b, h, marks);
            else
                mark(t, p, b, h, of_scales, bytes, marks);
    for (int64_t i = 0; i < all; i++)
        *lines += marks[i];
    free(marks);
    return KVB_OK;
}

/* ---- blocks of a plane that is transposed ---------------------------------------------------- */

/* Whether a gap begins and ends in the same block of `tokens` tokens. */
static bool joint(const kvb_reach *reach, int64_t tokens)
{
    return reach->kept && (reach->kept - 1) / tokens == reach->first / tokens;
}

/* Count the blocks, or quads, of `tokens` tokens each that a pass touches. */
static double blocks(const kvb_touched *t, int64_t tokens)
{
    int64_t count = 0;
    for (int64_t b = 0; b < t->cache->batch; b++) {
        const kvb_reach reach = t->tokens_of(t, b);
        count += t->cache->kv_heads *
                 (kvb_blocks_of(t->cache, 0, reach.kept, tokens) - joint(&reach, tokens) +
                  kvb_blocks_of(t->cache, reach.first, reach.end, tokens));
    }
    return (double)count;
}

/* Count the lines of a plane. Reads of a transposed block leave out the cells of padding at its
 * end. Stores write whole blocks, or the quads of the tokens. */
static int32_t plane_lines(const kvb_touched *t, const kvb_plane *p, double rows, double *lines)
{
    double of_scales = 0.0;
    const int64_t stored = p->cell == 1 ? LANES / 4 : LANES; /* tokens of a quad, or of a block */
    *lines = rows * (double)(p->row_bytes / LINE);
    if (packed(p))
        TRY(shared_lines(t, p, false, lines));
    else if (p->cell && t->stores)
        *lines = blocks(t, stored) * (double)(stored * p->row_bytes / LINE);
    else if (p->cell)
        *lines = blocks(t, LANES) * (double)(kvb_block_bytes(p) / LINE);
    if (kvb_scaled(p))
        TRY(shared_lines(t, p, true, &of_scales));
    *lines += of_scales;
    return KVB_OK;
}

int32_t kvb_lines_of(const kvb_touched *t, double rows, double *lines)
{
    double of_v = 0.0;
    TRY(plane_lines(t, &t->cache->k, rows, lines));
    TRY(plane_lines(t, &t->cache->v, rows, &of_v));
    *lines += of_v;
    return KVB_OK;
}

/* ---- the page table -------------------------------------------------------------------------- */

/* Count the table entries of slots first .. end of one sequence, and their lines. */
static double entries(const kvb_cache *c, int64_t seq, int64_t first, int64_t end, int64_t *next,
                      double *lines)
{
    if (end <= first)
        return 0.0;
    int64_t from = seq * c->table_stride + first / c->block_tokens;
    int64_t to = seq * c->table_stride + (end - 1) / c->block_tokens + 1;
    *lines += kvb_lines_on(from * (int64_t)sizeof *c->table, to * (int64_t)sizeof *c->table, next);
    return (double)(to - from);
}

double kvb_table_bytes(const kvb_touched *t, double *lines)
{
    const kvb_cache *c = t->cache;
    double count = 0.0;
    int64_t next = 0;
    *lines = 0.0;
    for (int64_t b = 0; kvb_layouts[c->layout].paged && b < c->batch; b++) {
        const kvb_reach reach = t->tokens_of(t, b);
        const int64_t slot = c->ring ? reach.first % c->capacity : reach.first,
                      last = slot + reach.end - reach.first,
                      wrapped = at_least(0, last - c->capacity); /* slots after the wrap */
        /* a ring that keeps its first tokens has not wrapped */
        const kvb_reach slots = {at_least(reach.kept, wrapped), slot, last};
        count += entries(c, b, 0, slots.kept, &next, lines) - joint(&slots, c->block_tokens);
        count += entries(c, b, slot, at_most(last, c->capacity), &next, lines);
    }
    return count * sizeof *c->table;
}
