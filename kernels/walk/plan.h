/* Who does what: rows of tokens cut into units, consecutive units to each thread. */
#ifndef KVB_PLAN_H
#define KVB_PLAN_H

#include "walk/queries.h"

#pragma GCC visibility push(hidden)

/* A range of tokens of one sequence: one KV head (one query row for perhead), or all heads where
 * they lie inside. */
typedef struct kvb_unit {
    int64_t seq;
    int64_t head;   /* the first KV head */
    int64_t heads;  /* KV heads walked: 1, or all of them */
    int64_t q_row;  /* the first query row that each of them serves, */
    int64_t q_rows; /* and how many: a row for each query of the sequence and head of the group */
    int64_t first;  /* tokens from this one on, */
    int64_t count;  /* so many; */
    int64_t before; /* but behind so many of them, where that is not 0, `gap` are left out */
    int64_t gap;
    int64_t
        partial; /* index of the unit's first partial state, or -1: the unit is its whole scan */
} kvb_unit;

/* KV heads of a unit. */
static inline int64_t kvb_unit_heads(const kvb_decode *a)
{
    return a->variant != VARIANT_PERHEAD && kvb_heads_inner(a->cache) ? a->cache->kv_heads : 1;
}

/* The i-th token of a unit. */
static inline int64_t kvb_unit_token(const kvb_unit *unit, int64_t i)
{
    return unit->first + i + (i >= unit->before ? unit->gap : 0);
}

/* Query rows that a unit has queries for. */
static inline int64_t kvb_unit_rows(const kvb_decode *a, const kvb_unit *unit)
{
    return a->variant == VARIANT_PERHEAD ? 1 : kvb_queries_of(a, unit->seq) * kvb_group_of(a);
}

/* A scan is what output states are made from: the tokens of (sequence, KV head), (sequence, query
 * row ) or a whole sequence. */
typedef struct kvb_plan {
    /* [batch][queries], of what each attends to, when the plan was made */
    int64_t *firsts;
    int64_t *ends;
    kvb_unit *units;       /* by scan, then by token */
    int64_t *scan_units;   /* [scans + 1] */
    int64_t *thread_units; /* [threads + 1] */
    int64_t scans;
    int64_t states; /* of a scan: query rows of its heads */
    /* partial states in all: `states` for each unit of a scan that was cut */
    int64_t partials;
} kvb_plan;

int32_t kvb_plan_make(const kvb_decode *args, int32_t threads, kvb_plan *plan);
/* Whether the plan still holds: table and lengths belong to the caller and may have changed, and a
 * run may add `grown`. */
int32_t kvb_plan_ready(const kvb_decode *args, int32_t threads, int64_t grown,
                       const kvb_plan *plan);
void kvb_plan_free(kvb_plan *plan);

/* check.c: all of a decode's arguments */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads);

#pragma GCC visibility pop

#endif
