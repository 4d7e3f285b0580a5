/* What the variants of decode share: the task, a thread's state, and the begin and end of a unit.
 */
#ifndef KVB_DECODE_H
#define KVB_DECODE_H

#include "base/pace.h"
#include "base/ticks.h"
#include "walk/walk.h"

#pragma GCC visibility push(hidden)

typedef struct kvb_decode_task {
    kvb_task task;
    kvb_decode args;
    kvb_plan plan;
    /* query rows of a KV head in a sequence with all queries; perhead: 1, each walks for itself */
    int64_t q_rows;
    int64_t parts;        /* groups into which these are divided, of at most `most` each */
    int64_t most;         /* most query rows that both halves take in a call */
    int64_t slots;        /* states of a KV head; each part is padded to a class */
    int64_t heads;        /* KV heads of a unit */
    int32_t made[PLANES]; /* kvb_made_of() */
    int64_t k_pad, v_pad;
    int64_t step; /* most tokens of a block */
    /* buffers for scores, each for a tile of TILE tokens; twopass: enough for all blocks of a unit
     */
    int64_t rooms;
    float *partials; /* [plan.partials][LANES + v_pad]: max, sum, then acc */
} kvb_decode_task;

static inline int64_t kvb_floats(int64_t n) { return n * (int64_t)sizeof(float); }

/* Return how many of `q_rows` query rows a part has. All parts but the last are full. */
static inline int64_t kvb_part_rows(const kvb_decode_task *task, int64_t q_rows, int64_t part)
{
    return at_least(0, at_most(task->most, q_rows - part * task->most));
}

/* The block of a walk that is read, and the next one, which is prefetched meanwhile. */
typedef struct kvb_pair {
    kvb_block *block, *next;
    kvb_block blocks[2];
} kvb_pair;

static inline void kvb_pair_next(kvb_pair *pair, kvb_walk *walk)
{
    kvb_block *done = pair->block;
    pair->block = pair->next;
    pair->next = done;
    kvb_walk_next(walk, done);
}

static inline void kvb_pair_start(kvb_pair *pair, kvb_walk *walk)
{
    pair->block = &pair->blocks[0];
    pair->next = &pair->blocks[1];
    kvb_walk_next(walk, pair->next);
    kvb_pair_next(pair, walk);
}

/* Make the tile of one KV head: its rows, scales and prefetches. */
static inline void kvb_tile_make(const kvb_walk *walk, const kvb_pair *pair, int64_t head,
                                 bool apart, kvb_tile *tile, kvb_lists *lists)
{
    kvb_tile_rows(walk, pair->block, head, tile);
    kvb_tile_scales(walk, pair->block, head, tile);
    kvb_tile_requests(walk, pair->block, pair->next, head, apart, tile, lists);
}

/* Add the ticks since *from to a stage, and set *from to now. */
static inline void kvb_lap(double *stage, uint64_t *from)
{
    const uint64_t now = kvb_ticks();
    *stage += (double)(now - *from);
    *from = now;
}

/* Most tokens whose rows are converted to float32 at a time. */
enum { WIDE = TILE_LISTED };

/* A thread's scratch. */
typedef struct kvb_state {
    kvb_group *groups; /* [heads][parts of the task] */
    int64_t parts;     /* parts for which the unit's sequence has queries */
    /* [Q_ROWS][QUERY_SCORES]; [parts] of these for rows that are converted or turned; twopass
     * [rooms][heads][parts] of these */
    float *scores;
    /* if there are more query rows than a call takes: WIDE rows of K or V as float32, or a turned
     * piece of them */
    float *wide;
    uint8_t *turned;
    /* lines to prefetch with one part: at most those of a piece of the longest rows, of bf16 */
    const uint8_t *asked[TURNED * DIM_MAX * 2 / LINE];
    kvb_tile tile, wide_tile;
    int64_t wide_rows[WIDE];
    kvb_lists lists;
    kvb_pair pair;
    kvb_walk walk; /* not on the stack, which is small with musl */
    kvb_pace pace; /* after `walk`: before it, `dot` of q8_0 took 5 % more time */
} kvb_state;

/* units.c */
void kvb_unit_begin(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit);
void kvb_unit_end(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit);
/* merge.c: write the result of one query row of a unit, for the head-th of its KV heads: the output
 * if the unit is its whole scan, else a partial state. `max` is in log2 units. acc is still to be
 * multiplied by `tensor`. A null acc means that the query does not exist: the output is zeros. */
void kvb_row_end(const kvb_decode_task *task, const kvb_unit *unit, int64_t head, int64_t q_row,
                 float max, float sum, const float *acc, float tensor);
/* merge.c: merge the partial states of scans that were cut. Every thread calls it when all units
 * are done. */
void kvb_merge(kvb_task *base, int32_t thread, void *scratch);

static const float kvb_log2_e = 1.44269504f;

/* slow.c: read rows of these units once more, in a build with KVB_SLOW. */
void kvb_slow(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit,
              const kvb_unit *end);

/* Do all units of a thread, one function per variant. `ticks` is null unless stages are timed. */
void kvb_flash(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks);
void kvb_twopass(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks);
void kvb_perhead(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks);

/* traffic.c: what the rows of a plane are made once for all parts, if there are more query rows
 * than a call takes: nothing, float32, or turned. Transposed rows are made nothing if a half can
 * read them. */
enum { MADE_NOTHING, MADE_FLOATS, MADE_TURNED };
int32_t kvb_made_of(const kvb_decode *args, const kvb_plane *plane);
/* traffic.c: count what one pass moves. Fails if memory is lacking. */
int32_t kvb_traffic_decode(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);
int32_t kvb_traffic_twin(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);

/* foreign.c: call a plug-in's kernel for all units of a thread; return the bytes of scratch for it.
 */
void kvb_foreign(kvb_task *base, int32_t thread, void *scratch);
int64_t kvb_foreign_scratch(const kvb_decode_task *task);

#pragma GCC visibility pop

#endif
