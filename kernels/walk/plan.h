/* Who does what: rows of tokens cut into units, consecutive units to each thread. */
#ifndef KVB_PLAN_H
#define KVB_PLAN_H

#include "cache/cache.h"

#pragma GCC visibility push(hidden)

/* A range of tokens of one sequence: one KV head (one query row for perhead), or all heads where
 * they lie inside. */
typedef struct kvb_unit {
    int64_t seq;
    int64_t head;   /* the first KV head */
    int64_t heads;  /* KV heads walked: 1, or all of them */
    int64_t q_row;  /* the first query row that each of them serves, */
    int64_t q_rows; /* and how many: a row for each query of the sequence and head of the group */
    int64_t first;  /* tokens first .. first + count */
    int64_t count;
    int64_t
        partial; /* index of the unit's first partial state, or -1: the unit is its whole scan */
} kvb_unit;

/* Queries of a sequence, query heads of a KV head, and the query rows that share that. */
static inline int64_t kvb_queries(const kvb_decode *a) { return at_least(1, a->q_len); }
static inline int64_t kvb_group_of(const kvb_decode *a) { return a->q_heads / a->cache->kv_heads; }
static inline int64_t kvb_q_rows(const kvb_decode *a) { return kvb_queries(a) * kvb_group_of(a); }

/* The query of a query row: no division where there is one. */
static inline int64_t kvb_query_of(const kvb_decode *a, int64_t q_row)
{
    return kvb_queries(a) == 1 ? 0 : q_row / kvb_group_of(a);
}

/* Which vector of q, or of out, a query row of a KV head is. */
static inline int64_t kvb_q_vector(const kvb_decode *a, int64_t seq, int64_t head, int64_t q_row)
{
    const int64_t group = kvb_group_of(a), query = kvb_query_of(a, q_row);
    return (seq * kvb_queries(a) + query) * a->q_heads + head * group + q_row - query * group;
}

/* One past the last token that a query of a sequence attends to. */
static inline int64_t kvb_end_of(const kvb_decode *a, int64_t seq, int64_t query)
{
    const int64_t queries = kvb_queries(a);
    return a->ends ? a->ends[seq * queries + query]
                   : at_least(0, a->cache->lengths[seq] - (queries - 1 - query));
}

/* KV heads of a unit. */
static inline int64_t kvb_unit_heads(const kvb_decode *a)
{
    return a->variant != VARIANT_PERHEAD && kvb_heads_inner(a->cache) ? a->cache->kv_heads : 1;
}

/* A scan is what output states are made from: the tokens of (sequence, KV head), (sequence, query
 * row ) or a whole sequence. */
typedef struct kvb_plan {
    int64_t *ends;         /* [batch][queries], those that the plan was made for */
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

/* First token that any query of a sequence attends to, and one past the last. */
void kvb_attended(const kvb_decode *args, int64_t seq, int64_t *first, int64_t *end);

/* check.c: all of a decode's arguments */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads);

#pragma GCC visibility pop

#endif
