/* The queries of a decode, and the tokens that each of them attends to. */
#ifndef KVB_QUERIES_H
#define KVB_QUERIES_H

#include "cache/cache.h"

#pragma GCC visibility push(hidden)

/* Most queries of a sequence; query heads of a KV head; most query rows of a KV head. */
static inline int64_t kvb_queries(const kvb_decode *a) { return at_least(1, a->q_len); }
static inline int64_t kvb_group_of(const kvb_decode *a) { return a->q_heads / a->cache->kv_heads; }
static inline int64_t kvb_q_rows(const kvb_decode *a) { return kvb_queries(a) * kvb_group_of(a); }

/* Return the query of a query row. Without a division if there is only one. */
static inline int64_t kvb_query_of(const kvb_decode *a, int64_t q_row)
{
    return kvb_queries(a) == 1 ? 0 : q_row / kvb_group_of(a);
}

/* Return the index of the vector of q and of `out` that belongs to a query row of a KV head. */
static inline int64_t kvb_q_vector(const kvb_decode *a, int64_t seq, int64_t head, int64_t q_row)
{
    const int64_t group = kvb_group_of(a), query = kvb_query_of(a, q_row);
    return (seq * kvb_queries(a) + query) * a->q_heads + head * group + q_row - query * group;
}

/* Return how many queries a sequence has: those up to the last one whose end is not 0. */
static inline int64_t kvb_queries_of(const kvb_decode *a, int64_t seq)
{
    int64_t count = kvb_queries(a);
    if (a->ends)
        while (count && !a->ends[seq * kvb_queries(a) + count - 1])
            count--;
    return count;
}

/* The tokens that a query attends to: 0 .. kept and first .. end. Of the tokens from `newest` on,
 * only those whose bit in `word` is set; the lowest bit is `newest`. If the two ranges have no gap
 * between them, kept is 0 and first .. end has all. */
typedef struct kvb_seen {
    int64_t kept, first, end;
    int64_t newest; /* below 0 if the sequence has fewer tokens than queries */
    uint32_t word;  /* all ones if the mask is not a tree */
} kvb_seen;

/* Return one past the last token that a query may attend to, without its word. */
static inline int64_t kvb_end_of(const kvb_decode *a, int64_t seq, int64_t query)
{
    const int64_t queries = kvb_queries(a), length = a->cache->lengths[seq];
    if (a->ends)
        return a->ends[seq * queries + query];
    return a->mask == KVB_MASK_CHAIN ? at_least(0, length - (queries - 1 - query)) : length;
}

/* Return a query's own token, from which ALiBi distances count. In a chain it is the last one that
 * the query attends to; in a block or tree of n queries, the i-th query has the i-th of the n
 * newest tokens. */
static inline int64_t kvb_own_token(const kvb_decode *a, int64_t seq, int64_t query)
{
    if (a->mask == KVB_MASK_CHAIN)
        return kvb_end_of(a, seq, query) - 1;
    return a->cache->lengths[seq] - kvb_queries_of(a, seq) + query;
}

/* Return what a query attends to. In a tree a window keeps the last tokens of those that the
 * query's word selects. */
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
/* Return how many tokens a query attends to. */
int64_t kvb_tokens_seen(const kvb_seen *seen);
/* Return the tokens of a sequence from the first one to the last one that any query attends to,
 * without the gap that all queries leave out. */
kvb_reach kvb_attended(const kvb_decode *args, int64_t seq);

/* Check q_len, mask, ends and tree. */
int32_t kvb_check_queries(const kvb_decode *args);

#pragma GCC visibility pop

#endif
