/* Checks of a cache. A check that fails changes nothing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cache/cache.h"

/* Check that the size of the larger plane does not overflow. */
static int32_t check_size(const kvb_cache *c)
{
    int64_t bytes, row = at_least(kvb_row(c->k.dtype, c->head_dim),
                                  kvb_row(c->v.dtype, c->v_dim ? c->v_dim : c->head_dim));
    int64_t tokens = kvb_layouts[c->layout].transposed ? round_up(c->capacity, LANES) : c->capacity;
    int64_t places = c->batch * tokens; /* both bounded: no overflow */
    if (kvb_layouts[c->layout].paged &&
        (__builtin_mul_overflow(c->blocks, c->block_tokens, &places)))
        return kvb_fail(KVB_BAD_ARGUMENT, "blocks * block_tokens overflows");
    if (__builtin_mul_overflow(places, c->kv_heads, &bytes) ||
        __builtin_mul_overflow(bytes, row, &bytes) ||
        __builtin_add_overflow(bytes, c->batch * c->kv_heads * c->pad, &bytes) ||
        bytes > bytes_max / 4)
        return kvb_fail(KVB_BAD_ARGUMENT, "capacity %lld: the size of the cache overflows",
                        (long long)c->capacity);
    return KVB_OK;
}

/* Refuse a dtype, and list the dtypes that the layout has. */
static int32_t fail_dtype(const kvb_cache *c, int32_t unknown, int32_t plane)
{
    char has[128] = "";
    for (int32_t dtype = 0, at = 0; dtype < DTYPES && at < (int32_t)sizeof has; dtype++)
        if (kvb_layout_has(c->layout, dtype, plane))
            at += snprintf(has + at, sizeof has - (size_t)at, "%s%s", at ? ", " : "",
                           kvb_word("dtype", dtype));
    return kvb_fail(KVB_BAD_ARGUMENT, "dtype %s is not in the layout %s, which has: %s",
                    kvb_word("dtype", unknown), kvb_word("layout", c->layout), has);
}

/* Check the formats of both planes. Features that no kernel has yet are refused. */
static int32_t check_planes(const kvb_cache *c)
{
    TRY(kvb_check_word("dtype", c->k.dtype, DTYPES));
    TRY(kvb_check_word("dtype", c->v.dtype, DTYPES));
    TRY(kvb_check_word("scale", c->k.scale, SCALES));
    TRY(kvb_check_word("scale", c->v.scale, SCALES));
    TRY(kvb_check_range("v_in_k", c->v_in_k, 0, 1));
    if (c->v.channel)
        return kvb_fail(KVB_BAD_ARGUMENT, "v.channel is not null; only K has scales of channels");
    if (c->v_in_k || c->v_offset)
        return kvb_fail(KVB_UNSUPPORTED, "%s is not 0; no kernel supports V inside rows of K",
                        c->v_in_k ? "v_in_k" : "v_offset");
    return KVB_OK;
}

/* Check the scales of channels. A channel is one element of all rows of a head. */
static int32_t check_channel(const kvb_cache *c)
{
    const kvb_plane *p = &c->k;
    const int64_t count = p->channel ? c->kv_heads * c->head_dim : 0;
    if (p->channel && !kvb_formats[p->dtype].scaled)
        return kvb_fail(KVB_BAD_ARGUMENT, "k.channel: the dtype %s has no scales of channels",
                        kvb_word("dtype", p->dtype));
    for (int64_t i = 0; i < count; i++)
        if (!(p->channel[i] > 0.0f && isfinite(p->channel[i])))
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "k.channel[%lld] is %g; all must be finite and positive", (long long)i,
                            (double)p->channel[i]);
    return KVB_OK;
}

static int32_t check_tensor(const kvb_plane *p, const char *name)
{
    const float scale = p->tensor;
    if (scale == 0.0f)
        return KVB_OK;
    if (!(scale > 0.0f && isfinite(scale)))
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is %g; it must be finite and positive, or 0 for none",
                        name, (double)scale);
    if (!kvb_formats[p->dtype].exponent)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s: the dtype %s has no scale of the whole tensor", name,
                        kvb_word("dtype", p->dtype));
    return KVB_OK;
}

int32_t kvb_check_shape(const kvb_cache *c)
{
    TRY(kvb_check_given("cache", c));
    TRY(kvb_check_word("layout", c->layout, LAYOUTS));
    TRY(kvb_check_word("inner", c->inner, INNERS));
    TRY(check_planes(c));
    for (int32_t i = 0; i < PLANES; i++)
        if (!kvb_layout_has(c->layout, kvb_plane_of(c, i)->dtype, i))
            return fail_dtype(c, kvb_plane_of(c, i)->dtype, i);
    TRY(kvb_check_range("ring", c->ring, 0, 1));
    TRY(kvb_check_range("batch", c->batch, 1, BATCH_MAX));
    TRY(kvb_check_range("kv_heads", c->kv_heads, 1, HEADS_MAX));
    TRY(kvb_check_range("head_dim", c->head_dim, 1, DIM_MAX));
    TRY(kvb_check_range("v_dim", c->v_dim, 0, DIM_MAX));
    TRY(kvb_check_range("capacity", c->capacity, 1, tokens_max));
    TRY(kvb_check_range("pad", c->pad, 0, 1 << 20));
    TRY(kvb_check_lines("pad", c->pad));
    TRY(check_tensor(&c->k, "k.tensor"));
    TRY(check_tensor(&c->v, "v.tensor"));
    TRY(check_channel(c));
    if (kvb_layouts[c->layout].paged) {
        TRY(kvb_check_range("block_tokens", c->block_tokens, 1, tokens_max));
        TRY(kvb_check_range("blocks", c->blocks, 1, INT32_MAX));
    }
    return check_size(c);
}

static int32_t check_lengths(const kvb_cache *c)
{
    TRY(kvb_check_given("lengths", c->lengths));
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t high = c->ring ? tokens_max : c->capacity;
        if (c->lengths[b] < 0 || c->lengths[b] > high)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "lengths[%lld] is %lld; allowed is 0 to the capacity, %lld",
                            (long long)b, (long long)c->lengths[b], (long long)high);
    }
    return KVB_OK;
}

int32_t kvb_check_table(const kvb_cache *c, int64_t seq, int64_t first, int64_t end, int32_t low)
{
    for (int64_t t = first, slot; t < end;
         t += at_most(c->block_tokens - slot % c->block_tokens, c->capacity - slot)) {
        slot = c->ring ? t % c->capacity : t;
        int64_t at = seq * c->table_stride + slot / c->block_tokens;
        if (c->table[at] >= c->blocks || c->table[at] < (low < 0 ? INT32_MIN : low))
            return kvb_fail(KVB_BAD_ARGUMENT, "table[%lld] is %d; the pool has blocks 0 to %lld",
                            (long long)at, c->table[at], (long long)c->blocks - 1);
    }
    return KVB_OK;
}

int32_t kvb_check_cache(const kvb_cache *c)
{
    TRY(kvb_check_shape(c));
    if (c->bytes <= 0 || !c->k.rows || !c->v.rows)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache is not planned and bound");
    kvb_cache again = *c;
    TRY(kvb_cache_plan(&again));
    if (memcmp(&again, c, sizeof again)) /* the struct has no padding */
        return kvb_fail(KVB_BAD_ARGUMENT, "cache was planned for another shape");
    if (kvb_layouts[c->layout].paged)
        TRY(kvb_check_given("table", c->table));
    return check_lengths(c);
}

static bool same_plane(const kvb_plane *a, const kvb_plane *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->dim == b->dim;
}

/* Whether K of two caches has the same scales of channels. Heads and widths are equal. */
static bool same_channels(const kvb_cache *a, const kvb_cache *b)
{
    const float *one = a->k.channel, *other = b->k.channel;
    const size_t bytes = (size_t)(a->kv_heads * a->head_dim) * sizeof *one;
    return one == other || (one && other && !memcmp(one, other, bytes));
}

bool kvb_same_rows(const kvb_cache *a, const kvb_cache *b)
{
    return a->layout == b->layout && a->inner == b->inner && same_plane(&a->k, &b->k) &&
           same_plane(&a->v, &b->v) && a->ring == b->ring && a->batch == b->batch &&
           a->kv_heads == b->kv_heads && same_channels(a, b);
}
