/* A walk over given units that reads nothing: it writes down the rows of every tile, and those that it asks for. */
#include <stdint.h>

static uintptr_t *noted;
#define __builtin_prefetch(line, ...) (*noted++ = (uintptr_t)(line))
#define INLINE static inline __attribute__((always_inline, unused))

#include "walk/walk.h"

#include "isa/prefetch.tmpl.c"

static bool whole_f32(int64_t heads, int64_t dim) { return heads <= 4 && dim > 0; }
static bool whole_f16(int64_t heads, int64_t dim) { return heads <= 2 && dim > 0; }

const kvb_tier *kvb_tier_of(int32_t isa)
{
    static const kvb_tier takes = {.rows[DTYPE_F32] = {.whole = whole_f32, .in_turn = 4},
                                   .rows[DTYPE_F16] = {.whole = whole_f16, .in_turn = 1}};
    (void)isa;
    return &takes;
}

static uintptr_t *put(uintptr_t *to, const kvb_tile *tile, kvb_places rows)
{
    for (int64_t t = 0; t < tile->count * tile->schedule->kv_heads; t++)
        *to++ = (uintptr_t)row_of(tile, rows, t, tile->schedule->kv_heads > 1 ? ORDER_ROWS : ORDER_LISTED);
    return to;
}

static uintptr_t *put_ahead(uintptr_t *to, const kvb_tile *tile, kvb_places next, int64_t row_bytes)
{
    for (int32_t t = 0; t < tile->count; t++)
        *to++ = (uintptr_t)kvb_row_next(&tile->next, next, t, row_bytes);
    return to;
}

/* What a cursor fetches in as many calls as the tile has lines. */
static int64_t fetch(const kvb_tile *tile, kvb_places rows, int64_t lines, int64_t step)
{
    const uintptr_t *before = noted;
    prefetch cursor = prefetch_by(tile, rows, lines, step);
    for (int64_t line = 0; line < tile->count * lines; line++)
        prefetch_line(&cursor, tile->schedule->order);
    return noted - before;
}

/* What is touched, line after line, while a tile's rows are consumed run after run. */
static int64_t touch(const kvb_tile *tile, kvb_places rows, kvb_places then, int64_t lines)
{
    const uintptr_t *before = noted;
    prefetch cursor = prefetch_by(tile, then, lines, LINE);
    for (int64_t t = 0; t < tile->count; t += tile->schedule->run_rows) {
        prefetch_of(&cursor, tile, rows, then, t, ORDER_RUNS);
        for (int64_t line = 0; line < at_most(tile->schedule->run_rows, tile->count - t) * lines; line++) {
            const uint8_t *touched = cursor.from;
            prefetch_line(&cursor, ORDER_RUNS);
            noted[-1] = noted[-1] == (uintptr_t)touched + (uintptr_t)tile->schedule->distance ? (uintptr_t)touched : 0;
        }
    }
    return noted - before;
}

/* What the first of four lines asks for, of each of a tile's rows that are read one after another; 0 if others ask too. */
static uintptr_t *put_further(uintptr_t *to, const kvb_tile *tile, kvb_places rows)
{
    prefetch cursor = prefetch_from(tile, rows, LINE);
    for (int64_t t = 0; t < tile->count * tile->schedule->kv_heads; t++) {
        uintptr_t *const before = noted;
        for (int nth = 0; nth < 4; nth++)
            prefetch_with(&cursor, row_of(tile, rows, t, ORDER_ROWS) + nth * LINE, nth, ORDER_ROWS);
        *to++ = noted == before + 1 ? *before : 0;
        noted = before;
    }
    return to;
}

/* Of every tile: how many rows it has in a plane, to `sizes`; those of K, then of V, to `rows`; as many to prefetch while K
 * is consumed, then while V is, to `asked`; what cursors fetch of these, by `lines` a row and `step` bytes from one to the
 * next, or touch where rows are not read whole, to `fetched`, and how much in all, to `counts`. Returns how many tiles there are. */
__attribute__((visibility("default"))) int64_t walked(const kvb_decode *args, const kvb_unit *units, int64_t count,
                                                      int64_t *sizes, uintptr_t *rows, uintptr_t *asked, int64_t lines,
                                                      int64_t step, uintptr_t *fetched, int64_t *counts)
{
    static kvb_walk walk;
    static kvb_block blocks[2];
    static kvb_lists lists;
    static kvb_tile tile;
    kvb_block *block = &blocks[0], *next = &blocks[1];
    int64_t tiles = 0;
    noted = fetched;
    kvb_walk_start(&walk, args, units, units + count);
    kvb_walk_next(&walk, block);
    while (block->unit) {
        kvb_walk_next(&walk, next);
        for (int64_t h = 0; h < block->unit->heads; h += tile.schedule->kv_heads) {
            kvb_tile_rows(args, block, h, &tile);
            kvb_tile_requests(&walk, block, next, h, false, &tile, &lists);
            sizes[tiles] = tile.count * tile.schedule->kv_heads;
            rows = put(put(rows, &tile, tile.k), &tile, tile.v);
            const int32_t order = tile.schedule->order;
            if (order == ORDER_ROWS || order == ORDER_RUNS) {
                counts[tiles] = order == ORDER_ROWS ? 0 : touch(&tile, tile.k, tile.next.k, lines);
                counts[tiles++] += order == ORDER_ROWS ? 0 : touch(&tile, tile.v, tile.next.v, lines);
                asked = put_further(put_further(asked, &tile, tile.k), &tile, tile.v);
                continue;
            }
            counts[tiles] = fetch(&tile, tile.next.k, lines, step);
            counts[tiles++] += fetch(&tile, tile.next.v, lines, step);
            asked = put_ahead(asked, &tile, tile.next.k, args->cache->k.row_bytes);
            asked = put_ahead(asked, &tile, tile.next.v, args->cache->k.row_bytes);
        }
        kvb_block *done = block;
        block = next;
        next = done;
    }
    return tiles;
}
