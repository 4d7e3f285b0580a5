/* A tile: the rows of K and V that a stage takes at a time, and what it prefetches meanwhile. */
#ifndef KVB_TILE_H
#define KVB_TILE_H

#include "cache/cache.h"
#include "tier/schedule.h"

/* ---- a tile: up to TILE tokens of one sequence and one KV head ------------------------------- */

/* A list of rows: row t begins at from + at[t]. Tiles of the same geometry share `at`. */
typedef struct kvb_places {
    const uint8_t *from;
    const int64_t *at; /* [TILE], bytes */
} kvb_places;

static inline const uint8_t *kvb_row_at(kvb_places rows, int64_t t)
{
    return rows.from + rows.at[t];
}
static inline kvb_places kvb_rows_from(kvb_places rows, int64_t t)
{
    return (kvb_places){rows.from, rows.at + t};
}

enum { FEW_Q_ROWS = 2 }; /* most query rows for which the stages read rows in address order whole */
enum { CLASSES = 4 };    /* classes of groups: 1, 2, 4, 8 query rows */
/* Floats from the scores of one query row to the next, and of one KV head to the next. The scores
 * of one token then fall into different cache sets. */
enum { QUERY_SCORES = TILE + LANES, HEAD_SCORES = Q_ROWS * QUERY_SCORES };

/* Rows to prefetch while others are read: one line with each line that is read, never a burst. */
typedef struct kvb_asked {
    kvb_places rows;        /* one entry for every `rows_per_entry` rows that are read */
    int64_t streams;        /* entries whose lines are prefetched in turn */
    int64_t rows_per_entry; /* rows that begin at an entry and follow each other without a gap */
} kvb_asked;

/* A side: K of a tile, or V. */
typedef struct kvb_side {
    kvb_places rows; /* one row for each token */
    int64_t bytes;   /* bytes of a row with its padding; in address order, from a row to the next */
    /* bytes of a block and of a cell if the plane is transposed: then every LANES-th row is the
     * start of a block. Else 0 */
    int64_t block;
    int32_t cell;
    /* [TILE], in the cache or in the tile's `scales`; null if rows have no scales */
    const float *scale;
    const kvb_schedule *schedule;
    kvb_asked asked;     /* ORDER_LISTED, ORDER_LISTED_L2: the rows to prefetch */
    const uint8_t *then; /* ORDER_ROWS, ORDER_RUNS: the row to touch after the last one */
} kvb_side;

typedef struct kvb_tile {
    /* one past the last token. The last row is listed again up to a multiple of LANES */
    int32_t count;
    /* rows at the start that do not belong to the tile: below LANES, usually 0 */
    int32_t lead;
    int64_t first; /* token of row 0 in its sequence */
    kvb_side k, v;
    float scales[2][TILE];
} kvb_tile;

/* Return row t of a side, with `dim` elements: in place, or gathered from its block into `beside`.
 */
static inline const uint8_t *kvb_side_row(int32_t dtype, const kvb_side *side, int64_t t,
                                          int64_t dim, uint8_t *beside)
{
    if (!side->block)
        return kvb_row_at(side->rows, t);
    kvb_gather(dtype, side->cell, kvb_row_at(side->rows, t / LANES * LANES), t % LANES, dim,
               beside);
    return beside;
}

/* Stop the prefetch of a tile, for reading the tile again. */
static inline void kvb_tile_plain(kvb_tile *tile)
{
    tile->k.schedule = tile->v.schedule = &kvb_plain;
}

/* Return row t of the rows to prefetch, for a stage that reads whole rows. */
static inline const uint8_t *kvb_row_asked(const kvb_side *side, int64_t t)
{
    if (side->schedule->order >= ORDER_ROWS)
        return side->then + t * side->bytes;
    return kvb_row_at(side->asked.rows, t / side->asked.rows_per_entry) +
           t % side->asked.rows_per_entry * side->bytes;
}

/* Prefetch a line. The hint is part of the instruction, so the choice must be a branch. */
static inline void kvb_fetch(const uint8_t *line, bool to_l2)
{
    if (to_l2)
        __builtin_prefetch(line, 0, 2);
    else
        __builtin_prefetch(line);
}

#endif
