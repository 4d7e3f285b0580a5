/* Checks the arguments of a decode. */
#include <math.h>

#include "tier/tier.h"
#include "walk/plan.h"

/* Refuse a half that the tier lacks, or whose instructions this CPU lacks. No other half replaces
 * it. */
static int32_t check_half(const kvb_decode *a, int32_t plane)
{
    const int32_t way = kvb_way_of(a->variant, kvb_plane_of(a->cache, plane)->dtype);
    if (!kvb_has_half(a->isa, way, plane))
        return kvb_fail(KVB_UNSUPPORTED, "variant %s: isa %s has no kernel for it",
                        kvb_word("variant", a->variant), kvb_word("isa", a->isa));
    if (!kvb_half_runs(a->isa, way, plane))
        return kvb_fail(KVB_UNSUPPORTED,
                        "variant %s: this CPU lacks the dot products that it needs on isa %s",
                        kvb_word("variant", a->variant), kvb_word("isa", a->isa));
    return KVB_OK;
}

/* Refuse dtypes that the variant lacks. It takes a pair of dtypes if it has both and is made of
 * halves. */
static int32_t check_dtypes(const kvb_decode *a)
{
    const kvb_cache *c = a->cache;
    const char *k = kvb_word("dtype", c->k.dtype), *v = kvb_word("dtype", c->v.dtype),
               *variant = kvb_word("variant", a->variant), *layout = kvb_word("layout", c->layout);
    const bool alike = c->k.dtype == c->v.dtype;
    if (alike && kvb_reads(a->variant, c->layout, c->k.dtype, KVB_K) < 0)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "variant %s has no kernel for the dtype %s in the layout %s", variant, k,
                        layout);
    if (kvb_reads(a->variant, c->layout, c->k.dtype, KVB_K) < 0 ||
        kvb_reads(a->variant, c->layout, c->v.dtype, KVB_V) < 0 ||
        (!alike && kvb_takes_alike(a->variant)))
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "variant %s has no kernel for K of %s with V of %s in the layout %s",
                        variant, k, v, layout);
    return KVB_OK;
}

/* Check softcap, sinks and slopes. */
static int32_t check_scores(const kvb_decode *a)
{
    if (!(a->softcap >= 0.0f && a->softcap < INFINITY))
        return kvb_fail(KVB_BAD_ARGUMENT, "softcap is %g; it must be finite and not negative",
                        (double)a->softcap);
    for (int64_t h = 0; h < a->q_heads; h++) {
        if (a->sink && !(a->sink[h] < INFINITY))
            return kvb_fail(KVB_BAD_ARGUMENT, "sink[%lld] is %g; it must be below infinity",
                            (long long)h, (double)a->sink[h]);
        if (a->slope && !isfinite(a->slope[h]))
            return kvb_fail(KVB_BAD_ARGUMENT, "slope[%lld] is %g; it must be finite", (long long)h,
                            (double)a->slope[h]);
    }
    return KVB_OK;
}

/* Check the arguments for a plug-in's kernel: it gets units of flash, with K and V of one format.
 */
static int32_t check_foreign(const kvb_decode *a)
{
    const kvb_plane *k = &a->cache->k, *v = &a->cache->v;
    if (a->variant != VARIANT_FLASH)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "variant is %s; with a kernel of your own it must be flash",
                        kvb_word("variant", a->variant));
    if (kvb_queries(a) > 1 && a->window)
        return kvb_fail(KVB_UNSUPPORTED,
                        "q_len is more than 1 with a window; a kernel of your own is not told "
                        "where the window of each query begins");
    if (k->dtype != v->dtype || k->scale != v->scale || k->dim != v->dim)
        return kvb_fail(KVB_UNSUPPORTED,
                        "K and V differ in dtype or width; with a kernel of your own they must be "
                        "equal");
    return KVB_OK;
}

/* Check that the cache still holds all tokens that are attended to. */
static int32_t check_tokens(const kvb_decode *a)
{
    const kvb_cache *c = a->cache;
    for (int64_t b = 0; b < c->batch; b++) {
        const kvb_reach reach = kvb_attended(a, b);
        const int64_t first = reach.kept ? 0 : reach.first;
        if (c->ring && reach.end > first && c->lengths[b] - first > c->capacity)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "window: %lld tokens are needed, but the ring keeps capacity %lld",
                            (long long)(c->lengths[b] - first), (long long)c->capacity);
        if (!kvb_layouts[c->layout].paged)
            continue;
        TRY(kvb_check_table(c, b, 0, reach.kept, 0));
        TRY(kvb_check_table(c, b, reach.first, reach.end, 0));
    }
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
    TRY(kvb_check_queries(a));
    if (a->picked || a->picks)
        return kvb_fail(KVB_UNSUPPORTED, "picked is not null; no kernel supports picked tokens");
    TRY(kvb_check_range("window", a->window, 0, tokens_max));
    TRY(kvb_check_range("kept", a->kept, 0, tokens_max));
    if (a->kept && !a->window)
        return kvb_fail(KVB_BAD_ARGUMENT, "kept is %lld and window is 0; kept needs a window",
                        (long long)a->kept);
    TRY(check_scores(a));
    TRY(kvb_check_word("variant", a->variant, VARIANTS));
    TRY(check_dtypes(a));
    if (a->run)
        TRY(check_foreign(a));
    TRY(kvb_check_word("schedule", a->schedule, SCHEDULES));
    TRY(kvb_check_range("wrap", a->wrap, 0, c->lengths[0]));
    if (!(a->scale >= 0.0f && a->scale <= 3.0e38f))
        return kvb_fail(KVB_BAD_ARGUMENT, "scale is %g; it must be finite and not negative",
                        (double)a->scale);
    TRY(kvb_check_isa(a->isa));
    TRY(check_half(a, KVB_K));
    TRY(check_half(a, KVB_V));
    TRY(check_tokens(a));
    if (a->wrap && kvb_layouts[c->layout].paged)
        TRY(kvb_check_table(c, 0, 0, a->wrap, 0));
    return KVB_OK;
}
