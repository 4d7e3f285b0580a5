#include "walk/queries.h"

/* Clear the `count` lowest bits that are set. */
static uint32_t without_lowest(uint32_t word, int64_t count)
{
    for (; count > 0 && word; count--)
        word &= word - 1;
    return word;
}

static uint32_t lowest_bits(int64_t count)
{
    return count >= QUERIES_MAX ? UINT32_MAX : count > 0 ? (1u << count) - 1 : 0;
}

kvb_seen kvb_seen_in_tree(const kvb_decode *a, int64_t seq, int64_t query)
{
    kvb_seen seen = {.end = kvb_end_of(a, seq, query), .newest = INT64_MAX, .word = UINT32_MAX};
    if (!seen.end)
        return seen;
    seen.newest = seen.end - kvb_queries_of(a, seq);
    seen.word = a->tree[seq * kvb_queries(a) + query];
    if (seen.newest < 0) /* bits of tokens that do not exist */
        seen.word &= (uint32_t)(UINT64_MAX << -seen.newest);
    seen.word &= lowest_bits(seen.end - seen.newest);
    const int64_t left_out = a->window ? at_least(0, kvb_tokens_seen(&seen) - a->window) : 0;
    const int64_t first = at_most(left_out, at_least(0, seen.newest));
    seen.word = without_lowest(seen.word, left_out - first) |
                (seen.word & lowest_bits(a->kept - seen.newest));
    if (a->kept < first) {
        seen.kept = a->kept;
        seen.first = first;
    }
    return seen;
}

int64_t kvb_tokens_seen(const kvb_seen *seen)
{
    if (seen->newest >= seen->end)
        return seen->kept + seen->end - seen->first;
    return seen->kept + at_least(0, seen->newest - seen->first) + __builtin_popcount(seen->word);
}

kvb_reach kvb_attended(const kvb_decode *a, int64_t seq)
{
    kvb_reach all = {0};
    for (int64_t query = kvb_queries_of(a, seq); query-- > 0;) {
        const kvb_seen seen = kvb_seen_by(a, seq, query);
        if (!seen.end)
            continue;
        all.first = all.end ? at_most(all.first, seen.first) : seen.first;
        all.end = at_least(all.end, seen.end);
    }
    all.kept = at_most(all.first, a->kept); /* a query without a gap begins at 0 */
    return all;
}

static int32_t check_end(const kvb_decode *a, int64_t seq, int64_t query)
{
    const int64_t at = seq * kvb_queries(a) + query, length = a->cache->lengths[seq];
    if (a->ends[at] < 0 || a->ends[at] > length)
        return kvb_fail(KVB_BAD_ARGUMENT, "ends[%lld] is %lld; its sequence has %lld tokens",
                        (long long)at, (long long)a->ends[at], (long long)length);
    if (a->mask != KVB_MASK_CHAIN && a->ends[at] && a->ends[at] != length)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "ends[%lld] is %lld; with mask %d it must be 0, or the %lld tokens of its "
                        "sequence",
                        (long long)at, (long long)a->ends[at], a->mask, (long long)length);
    return KVB_OK;
}

int32_t kvb_check_queries(const kvb_decode *a)
{
    TRY(kvb_check_range("q_len", a->q_len, 0, QUERIES_MAX));
    TRY(kvb_check_range("mask", a->mask, KVB_MASK_CHAIN, KVB_MASK_TREE));
    if (a->tree ? a->mask != KVB_MASK_TREE : a->mask == KVB_MASK_TREE)
        return kvb_fail(KVB_BAD_ARGUMENT, "tree is %s, and mask is %d; a tree goes with mask %d",
                        a->tree ? "not null" : "null", a->mask, KVB_MASK_TREE);
    for (int64_t seq = 0; a->ends && seq < a->cache->batch; seq++)
        for (int64_t query = 0; query < kvb_queries(a); query++)
            TRY(check_end(a, seq, query));
    return KVB_OK;
}
