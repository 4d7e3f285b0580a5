/* What is folded: a tile of rows of both planes, and what is asked for meanwhile. */
#ifndef KVB_TILE_H
#define KVB_TILE_H

#include "cache/cache.h"
#include "tier/schedule.h"

/* ---- a tile: up to TILE tokens of one sequence and one KV head ------------------------------- */

/* Rows: where each begins, in bytes from one place. Tiles that lie alike share the list, however
 * far apart they are. */
typedef struct kvb_places {
    const uint8_t *from;
    const int64_t *at; /* [TILE] */
} kvb_places;

static inline const uint8_t *kvb_row_at(kvb_places rows, int64_t t)
{
    return rows.from + rows.at[t];
}
static inline kvb_places kvb_rows_from(kvb_places rows, int64_t t)
{
    return (kvb_places){rows.from, rows.at + t};
}

enum { FEW_Q_ROWS = 2 }; /* most whose stages take rows that lie one behind another whole */
enum { CLASSES = 4 };    /* of groups: 1, 2, 4, 8 query rows */
/* From the scores of one query row to those of the next one, and of a KV head: those of a token lie
 * in different sets of a cache. */
enum { QUERY_SCORES = TILE + LANES, HEAD_SCORES = Q_ROWS * QUERY_SCORES };

/* Rows whose lines are asked for while others are consumed: one line for each, never a burst. */
typedef struct kvb_asked {
    kvb_places rows;        /* an entry for every `rows_per_entry` rows that are consumed */
    int64_t streams;        /* entries whose lines are asked for in turn */
    int64_t rows_per_entry; /* rows from an entry's on, that lie one behind another */
} kvb_asked;

/* K of a tile, or V. */
typedef struct kvb_side {
    kvb_places rows; /* of each token */
    int64_t bytes;   /* of a row, with its padding: ORDER_ROWS, ORDER_RUNS: from it to the next */
    /* 0, or the plane is transposed: every LANES-th row is a block, and these are its bytes, and
     * those of a cell */
    int64_t block;
    int32_t cell;
    /* [TILE], in the cache itself or in the tile's `scales`; null where rows have none */
    const float *scale;
    const kvb_schedule *schedule;
    kvb_asked asked;     /* ORDER_LISTED, ORDER_LISTED_L2: what the schedule asks for meanwhile */
    const uint8_t *then; /* ORDER_ROWS, ORDER_RUNS: the row that is touched behind the last one */
} kvb_side;

typedef struct kvb_tile {
    /* one past the last live token; the rows behind are its own again, up to a multiple of LANES */
    int32_t count;
    /* tokens in front that are none of the tile's: below LANES, and most often 0 */
    int32_t lead;
    int64_t first; /* the token, of its sequence, whose rows come first */
    kvb_side k, v;
    float scales[2][TILE];
} kvb_tile;

/* Row t of a side, of `dim` elements: in its place, or out of its block to `beside`. */
static inline const uint8_t *kvb_side_row(int32_t dtype, const kvb_side *side, int64_t t,
                                          int64_t dim, uint8_t *beside)
{
    if (!side->block)
        return kvb_row_at(side->rows, t);
    kvb_gather(dtype, side->cell, kvb_row_at(side->rows, t / LANES * LANES), t % LANES, dim,
               beside);
    return beside;
}

/* The tile was asked for already: nothing is while it is consumed again. */
static inline void kvb_tile_plain(kvb_tile *tile)
{
    tile->k.schedule = tile->v.schedule = &kvb_plain;
}

/* Row t of those to prefetch, in a walk that takes whole rows. */
static inline const uint8_t *kvb_row_asked(const kvb_side *side, int64_t t)
{
    if (side->schedule->order >= ORDER_ROWS)
        return side->then + t * side->bytes;
    return kvb_row_at(side->asked.rows, t / side->asked.rows_per_entry) +
           t % side->asked.rows_per_entry * side->bytes;
}

/* The hint is part of the instruction, so that the choice is a branch. */
static inline void kvb_fetch(const uint8_t *line, bool to_l2)
{
    if (to_l2)
        __builtin_prefetch(line, 0, 2);
    else
        __builtin_prefetch(line);
}

#endif
