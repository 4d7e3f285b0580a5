/* What the variants of decode share: the task, a thread's state, and how a unit begins and ends. */
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
    /* of a KV head, of the sequence with the most queries; or 1 where each walks for itself */
    int64_t q_rows;
    int64_t parts;        /* groups of at most `most` that they are folded in */
    int64_t most;         /* query rows that both halves fold in a call */
    int64_t slots;        /* states of a KV head, padded to a class in each part */
    int64_t heads;        /* KV heads of a unit */
    int32_t made[PLANES]; /* kvb_made_of() */
    int64_t k_pad, v_pad;
    int64_t step; /* most tokens of a block */
    /* for scores, each of a tile of the most tokens; twopass: as many as all blocks of a unit want
     */
    int64_t rooms;
    float *partials; /* [plan.partials][LANES + v_pad]: max, sum, then acc */
} kvb_decode_task;

static inline int64_t kvb_floats(int64_t n) { return n * (int64_t)sizeof(float); }

/* Of so many query rows those of a part: all are full but the last. */
static inline int64_t kvb_part_rows(const kvb_decode_task *task, int64_t q_rows, int64_t part)
{
    return at_least(0, at_most(task->most, q_rows - part * task->most));
}

/* Of a walk, the block that is consumed and the one that is asked for meanwhile. */
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

/* The tile of one KV head: its rows and scales, and what it asks for. */
static inline void kvb_tile_make(const kvb_walk *walk, const kvb_pair *pair, int64_t head,
                                 bool apart, kvb_tile *tile, kvb_lists *lists)
{
    kvb_tile_rows(walk, pair->block, head, tile);
    kvb_tile_scales(walk, pair->block, head, tile);
    kvb_tile_requests(walk, pair->block, pair->next, head, apart, tile, lists);
}

/* Adds the ticks since *from to those of a stage, where they are asked for. */
static inline void kvb_lap(double *stage, uint64_t *from)
{
    const uint64_t now = kvb_ticks();
    *stage += (double)(now - *from);
    *from = now;
}

/* Tokens whose rows are made floats at a time, at most. */
enum { WIDE = TILE_LISTED };

/* A thread's scratch. */
typedef struct kvb_state {
    kvb_group *groups; /* [heads][parts of the task] */
    int64_t parts;     /* those that the unit's sequence has queries for */
    /* [Q_ROWS][QUERY_SCORES]; widened groups [parts] of it, twopass [rooms][heads][parts] */
    float *scores;
    /* [WIDE] rows of K or of V of a tile as float32, for more query rows than a call folds; or a
     * piece of them turned */
    float *wide;
    uint8_t *turned;
    /* of a part, at most a piece of the longest rows: words of two bytes */
    const uint8_t *asked[TURNED * DIM_MAX * 2 / LINE];
    kvb_tile tile, wide_tile;
    int64_t wide_rows[WIDE];
    kvb_lists lists;
    kvb_pair pair;
    kvb_walk walk; /* not on the stack, which is short where libc is musl */
    kvb_pace pace; /* behind `walk`: in front of it, `dot` of q8_0 took 5 % longer */
} kvb_state;

/* units.c */
void kvb_unit_begin(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit);
void kvb_unit_end(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit);
/* merge.c: one query row of a unit and of the head-th of its KV heads: its output where the unit is
 * the whole scan, else a partial state. `max` in units of log2; `tensor`: what acc is still to be
 * multiplied by. Without acc there is no such query: all are zeros. */
void kvb_row_end(const kvb_decode_task *task, const kvb_unit *unit, int64_t head, int64_t q_row,
                 float max, float sum, const float *acc, float tensor);
/* and scans that were cut, on every thread, when all are done. */
void kvb_merge(kvb_task *base, int32_t thread, void *scratch);

static const float kvb_log2_e = 1.44269504f;

/* slow.c: reads rows of these units once more, in a library that is slowed on purpose */
void kvb_slow(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit,
              const kvb_unit *end);

/* All units of a thread, by variant. `ticks` is null unless stages are timed. */
void kvb_flash(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks);
void kvb_twopass(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks);
void kvb_perhead(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks);

/* traffic.c: what the rows of a plane are made once for more query rows than a call folds. Those
 * that are transposed are read by every part as they are, if a half reads them so. */
enum { MADE_NOTHING, MADE_FLOATS, MADE_TURNED };
int32_t kvb_made_of(const kvb_decode *args, const kvb_plane *plane);
/* And what one pass moves; a code where memory to count with is lacking. */
int32_t kvb_traffic_decode(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);
int32_t kvb_traffic_twin(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic);

/* foreign.c: a plug-in's kernel, called for all units of a thread; and the bytes of scratch that it
 * takes. */
void kvb_foreign(kvb_task *base, int32_t thread, void *scratch);
int64_t kvb_foreign_scratch(const kvb_decode_task *task);

#pragma GCC visibility pop

#endif
