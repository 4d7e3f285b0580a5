/* What the arguments of a store must be. */
#include "store/store.h"

int32_t kvb_check_store(const kvb_store *a, int32_t threads)
{
    if (!a)
        return kvb_fail_null("store arguments");
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_cache(a->cache));
    if (!a->k)
        return kvb_fail_null("k");
    if (!a->v)
        return kvb_fail_null("v");
    TRY(kvb_check_range("tokens", a->tokens, 1, tokens_max));
    TRY(kvb_check_range("head_major", a->head_major, 0, 1));
    TRY(kvb_check_range("nt", a->nt, 0, 1));
    TRY(kvb_check_range("advance", a->advance, 0, 1));
    TRY(kvb_check_isa(a->isa));
    const kvb_cache *c = a->cache;
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t end = c->lengths[b] + a->tokens;
        if (end > (c->ring ? tokens_max : c->capacity))
            return kvb_fail(KVB_BAD_ARGUMENT, "tokens: sequence %lld would hold %lld of capacity %lld", (long long)b,
                            (long long)end, (long long)c->capacity);
        if (kvb_layouts[c->layout].paged)
            TRY(kvb_check_table(c, b, c->ring ? at_least(c->lengths[b], end - c->capacity) : c->lengths[b], end, -1));
    }
    return KVB_OK;
}
