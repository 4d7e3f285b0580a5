/* Who does what: rows of tokens cut into units, consecutive units to each thread. */
#ifndef KVB_PLAN_H
#define KVB_PLAN_H

#include "cache/cache.h"

#pragma GCC visibility push(hidden)

/* A range of tokens of one sequence: one KV head (one query head for perhead), or all heads where
 * they lie inside. */
typedef struct kvb_unit {
    int64_t seq;
    int64_t head;    /* KV head of the first query head */
    int64_t heads;   /* KV heads walked: 1, or all of them */
    int64_t query;   /* first query head */
    int64_t queries; /* query heads served per KV head */
    int64_t first;   /* tokens first .. first + count */
    int64_t count;
    int64_t partial; /* index of the unit's first partial state, or -1: the unit is its whole row */
} kvb_unit;

/* KV heads of a unit. */
static inline int64_t kvb_unit_heads(const kvb_decode *a)
{
    return a->variant != VARIANT_PERHEAD && kvb_heads_inner(a->cache) ? a->cache->kv_heads : 1;
}

/* Rows are what an output state is made from: (sequence, KV head), (sequence, query head) or a
 * whole sequence. */
typedef struct kvb_plan {
    int64_t *lengths;      /* [batch], those that the plan was made for */
    kvb_unit *units;       /* by row, then by token */
    int64_t *row_units;    /* [rows + 1] */
    int64_t *thread_units; /* [threads + 1] */
    int64_t rows;
    int64_t states; /* query heads of a row */
    /* partial states in all: `states` for each unit of a row that was cut */
    int64_t partials;
} kvb_plan;

int32_t kvb_plan_make(const kvb_decode *args, int32_t threads, kvb_plan *plan);
/* Whether the plan still holds: table and lengths belong to the caller and may have changed, and a
 * run may add `grown`. */
int32_t kvb_plan_ready(const kvb_decode *args, int32_t threads, int64_t grown,
                       const kvb_plan *plan);
void kvb_plan_free(kvb_plan *plan);

/* First token that a sequence attends to, and one past the last. */
void kvb_attended(const kvb_decode *args, int64_t seq, int64_t *first, int64_t *end);

/* check.c: all of a decode's arguments */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads);

#pragma GCC visibility pop

#endif
