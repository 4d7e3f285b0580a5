/* The plan of a decode: scans of tokens cut into units, and consecutive units for each thread. */
#ifndef KVB_PLAN_H
#define KVB_PLAN_H

#include "walk/queries.h"

#pragma GCC visibility push(hidden)

/* A unit: a range of tokens of one sequence, for one KV head (perhead: one query row), or for all
 * KV heads if the heads are inside a token. */
typedef struct kvb_unit {
    int64_t seq;
    int64_t head;   /* the first KV head */
    int64_t heads;  /* number of KV heads: 1, or all of them */
    int64_t q_row;  /* the first query row of each KV head */
    int64_t q_rows; /* number of query rows: one for each query and query head of the KV head */
    int64_t first;  /* the first token */
    int64_t count;  /* number of tokens, without the gap */
    int64_t before; /* not 0: after `before` tokens, `gap` tokens are left out */
    int64_t gap;
    int64_t partial; /* index of the unit's first partial state; -1: the unit is its whole scan */
} kvb_unit;

/* Return the number of KV heads of a unit. */
static inline int64_t kvb_unit_heads(const kvb_decode *a)
{
    return a->variant != VARIANT_PERHEAD && kvb_heads_inner(a->cache) ? a->cache->kv_heads : 1;
}

/* Return the i-th token of a unit. */
static inline int64_t kvb_unit_token(const kvb_unit *unit, int64_t i)
{
    return unit->first + i + (i >= unit->before ? unit->gap : 0);
}

/* Return the number of query rows for which the unit's sequence has queries. */
static inline int64_t kvb_unit_rows(const kvb_decode *a, const kvb_unit *unit)
{
    return a->variant == VARIANT_PERHEAD ? 1 : kvb_queries_of(a, unit->seq) * kvb_group_of(a);
}

/* A scan is the tokens from which output states are made: those of a sequence for one KV head, one
 * query row, or all KV heads. */
typedef struct kvb_plan {
    /* [batch][queries]: the range that each query attended to when the plan was made */
    int64_t *firsts;
    int64_t *ends;
    kvb_unit *units;       /* ordered by scan, then by token */
    int64_t *scan_units;   /* [scans + 1]: the first unit of each scan */
    int64_t *thread_units; /* [threads + 1]: the first unit of each thread */
    int64_t scans;
    int64_t states; /* states of a scan: the query rows of its heads */
    /* number of partial states: `states` for each unit of a scan that was cut */
    int64_t partials;
} kvb_plan;

int32_t kvb_plan_make(const kvb_decode *args, int32_t threads, kvb_plan *plan);
/* Check that the plan still holds. The caller may have changed table and lengths, and a run may add
 * `grown` tokens. */
int32_t kvb_plan_ready(const kvb_decode *args, int32_t threads, int64_t grown,
                       const kvb_plan *plan);
void kvb_plan_free(kvb_plan *plan);

/* check.c: check all arguments of a decode. */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads);

#pragma GCC visibility pop

#endif
