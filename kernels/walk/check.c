/* What the arguments of a decode must be. */
#include "tier/tier.h"
#include "walk/plan.h"

/* A tier may lack a variant, and a CPU the instructions for it: nothing else is run in its place.
 */
static int32_t check_way(const kvb_decode *a)
{
    int32_t row_kernel = kvb_row_kernel_of(a->variant, a->cache->k.dtype);
    if (!kvb_has_row_kernel(a->isa, row_kernel))
        return kvb_fail(KVB_UNSUPPORTED, "variant %s: isa %s has no kernel for it",
                        kvb_word("variant", a->variant), kvb_word("isa", a->isa));
    if (!kvb_row_kernel_runs(a->isa, row_kernel))
        return kvb_fail(KVB_UNSUPPORTED,
                        "variant %s: this CPU lacks the dot products that it takes on isa %s",
                        kvb_word("variant", a->variant), kvb_word("isa", a->isa));
    return KVB_OK;
}

int32_t kvb_check_decode(const kvb_decode *a, int32_t threads)
{
    if (!a)
        return kvb_fail_null("decode arguments");
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_cache(a->cache));
    if (!a->q)
        return kvb_fail_null("q");
    if (!a->out)
        return kvb_fail_null("out");
    const kvb_cache *c = a->cache;
    TRY(kvb_check_range("q_heads", a->q_heads, 1, HEADS_MAX));
    if (a->q_heads % c->kv_heads)
        return kvb_fail(KVB_BAD_ARGUMENT, "q_heads %lld is not a multiple of kv_heads %lld",
                        (long long)a->q_heads, (long long)c->kv_heads);
    TRY(kvb_check_range("q_len", a->q_len, 0, tokens_max));
    if (a->q_len > 1 || a->ends)
        return kvb_fail(
            KVB_UNSUPPORTED,
            "%s; there are no kernels yet for several queries of a sequence, or ends of theirs",
            a->q_len > 1 ? "q_len is more than 1" : "ends is not null");
    if (a->sink)
        return kvb_fail(KVB_UNSUPPORTED,
                        "sink is not null; there are no kernels yet for attention sinks");
    TRY(kvb_check_range("window", a->window, 0, tokens_max));
    TRY(kvb_check_word("variant", a->variant, VARIANTS));
    if (kvb_reads(a->variant, c->layout, c->k.dtype) < 0)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "variant %s has no kernel for the dtype %s in the layout %s",
                        kvb_word("variant", a->variant), kvb_word("dtype", c->k.dtype),
                        kvb_word("layout", c->layout));
    if (a->run && a->variant != VARIANT_FLASH)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "variant is %s; with a kernel of your own it must be flash",
                        kvb_word("variant", a->variant));
    TRY(kvb_check_word("schedule", a->schedule, SCHEDULES));
    TRY(kvb_check_range("wrap", a->wrap, 0, c->lengths[0]));
    if (!(a->scale >= 0.0f && a->scale <= 3.0e38f))
        return kvb_fail(KVB_BAD_ARGUMENT, "scale is %g; it must be finite and not negative",
                        (double)a->scale);
    TRY(kvb_check_isa(a->isa));
    TRY(check_way(a));
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t first, end;
        kvb_attended(a, b, &first, &end);
        if (c->ring && end - first > c->capacity)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "window: %lld tokens are attended, but the ring keeps capacity %lld",
                            (long long)(end - first), (long long)c->capacity);
        if (kvb_layouts[c->layout].paged)
            TRY(kvb_check_table(c, b, first, end, 0));
    }
    if (a->wrap && kvb_layouts[c->layout].paged)
        TRY(kvb_check_table(c, 0, 0, a->wrap, 0));
    return KVB_OK;
}
