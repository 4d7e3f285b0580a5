/* The queries of a decode: which there are, and what each attends to. */
#ifndef KVB_QUERIES_H
#define KVB_QUERIES_H

#include "cache/cache.h"

#pragma GCC visibility push(hidden)

/* Queries of a sequence, at most; query heads of a KV head; and the query rows that share that. */
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

/* Those that a sequence has: none follows the last one whose end is not 0. */
static inline int64_t kvb_queries_of(const kvb_decode *a, int64_t seq)
{
    int64_t count = kvb_queries(a);
    if (a->ends)
        while (count && !a->ends[seq * kvb_queries(a) + count - 1])
            count--;
    return count;
}

/* What a query attends to: tokens 0 .. kept and first .. end, but from `newest` on only those whose
 * bit is set, that of `newest` being the lowest. Where no gap is between, kept is 0. */
typedef struct kvb_seen {
    int64_t kept, first, end;
    int64_t newest; /* below 0 where the sequence has fewer tokens than queries */
    uint32_t word;  /* all ones where no mask is a tree */
} kvb_seen;

/* One past the last token that a query may attend to, whatever its word says. */
static inline int64_t kvb_end_of(const kvb_decode *a, int64_t seq, int64_t query)
{
    const int64_t queries = kvb_queries(a), length = a->cache->lengths[seq];
    if (a->ends)
        return a->ends[seq * queries + query];
    return a->mask == KVB_MASK_CHAIN ? at_least(0, length - (queries - 1 - query)) : length;
}

/* A query stands for one token, from which distances count: of a block or tree, for one of the
 * newest, in their order. */
static inline int64_t kvb_own_token(const kvb_decode *a, int64_t seq, int64_t query)
{
    if (a->mask == KVB_MASK_CHAIN)
        return kvb_end_of(a, seq, query) - 1;
    return a->cache->lengths[seq] - kvb_queries_of(a, seq) + query;
}

/* In a tree a window leaves the last of all that a query attends to. */
kvb_seen kvb_seen_in_tree(const kvb_decode *args, int64_t seq, int64_t query);
static inline kvb_seen kvb_seen_by(const kvb_decode *a, int64_t seq, int64_t query)
{
    if (a->mask == KVB_MASK_TREE)
        return kvb_seen_in_tree(a, seq, query);
    const int64_t end = kvb_end_of(a, seq, query),
                  first = a->window ? at_least(0, end - a->window) : 0;
    const bool gap = a->kept < first;
    return (kvb_seen){.kept = gap ? a->kept : 0,
                      .first = gap ? first : 0,
                      .end = end,
                      .newest = INT64_MAX,
                      .word = UINT32_MAX};
}
/* How many tokens that are. */
int64_t kvb_tokens_seen(const kvb_seen *seen);
/* Tokens from the first that any query of a sequence attends to, to the last, but for a gap that
 * all of them leave. */
kvb_reach kvb_attended(const kvb_decode *args, int64_t seq);

/* What `ends` and `tree` may be. */
int32_t kvb_check_queries(const kvb_decode *args);

#pragma GCC visibility pop

#endif
