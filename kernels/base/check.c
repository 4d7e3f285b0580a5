/* Every argument rule, each with a message that names the argument. A rule that fails leaves everything untouched. */
#include <stdio.h>

#include "base/core.h"

static int32_t fail_null(const char *name) { return kvb_fail(KVB_BAD_ARGUMENT, "%s is null", name); }

static int32_t check_word(const char *list, int32_t word, int32_t count)
{
    if (word < 0 || word >= count)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s %d is not a word of the list (0 to %d)", list, word, count - 1);
    return KVB_OK;
}

static int32_t check_range(const char *name, int64_t value, int64_t low, int64_t high)
{
    if (value < low || value > high)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is %lld; allowed is %lld to %lld", name, (long long)value,
                        (long long)low, (long long)high);
    return KVB_OK;
}

#define TRY(call)             \
    do {                      \
        int32_t code = call;  \
        if (code)             \
            return code;      \
    } while (0)

enum { BATCH_MAX = 1 << 20, HEADS_MAX = 1 << 16, THREADS_MAX = 1024 };
static const int64_t tokens_max = INT32_MAX; /* so that token arithmetic times row bytes stays inside int64 */
static const int64_t bytes_max = INT64_MAX / 8;

int32_t kvb_check_threads(int32_t threads) { return check_range("threads", threads, 1, THREADS_MAX); }

int32_t kvb_check_isa(int32_t isa)
{
    TRY(check_word("isa", isa, ISAS));
    if (!kvb_tier_of(isa))
        return kvb_fail(KVB_UNSUPPORTED, "isa %s is not part of this build", kvb_word("isa", isa));
    if (!kvb_isa_runs(isa))
        return kvb_fail(KVB_UNSUPPORTED, "isa %s does not run on this CPU", kvb_word("isa", isa));
    return KVB_OK;
}

/* The planes must be countable: multiply the factors of the largest one without overflow. */
static int32_t check_size(const kvb_cache *c)
{
    int64_t row = kvb_row(c->dtype, c->head_dim), bytes;
    int64_t tokens = kvb_layouts[c->layout].transposed ? round_up(c->capacity, LANES) : c->capacity;
    int64_t places = c->batch * tokens; /* both bounded: no overflow */
    if (kvb_layouts[c->layout].paged && (__builtin_mul_overflow(c->blocks, c->block_tokens, &places)))
        return kvb_fail(KVB_BAD_ARGUMENT, "blocks * block_tokens overflows");
    if (__builtin_mul_overflow(places, c->kv_heads, &bytes) || __builtin_mul_overflow(bytes, row, &bytes) ||
        __builtin_add_overflow(bytes, c->batch * c->kv_heads * c->pad, &bytes) || bytes > bytes_max / 4)
        return kvb_fail(KVB_BAD_ARGUMENT, "capacity %lld: the size of the cache overflows", (long long)c->capacity);
    return KVB_OK;
}

/* The dtypes that a layout has, in one message. */
static int32_t fail_dtype(const kvb_cache *c)
{
    char has[128] = "";
    for (int32_t dtype = 0, at = 0; dtype < DTYPES && at < (int32_t)sizeof has; dtype++)
        if (kvb_layout_has(c->layout, dtype))
            at += snprintf(has + at, sizeof has - (size_t)at, "%s%s", at ? ", " : "", kvb_word("dtype", dtype));
    return kvb_fail(KVB_BAD_ARGUMENT, "dtype %s is none of the layout %s, which has: %s", kvb_word("dtype", c->dtype),
                    kvb_word("layout", c->layout), has);
}

int32_t kvb_check_shape(const kvb_cache *c)
{
    if (!c)
        return fail_null("cache");
    TRY(check_word("layout", c->layout, LAYOUTS));
    TRY(check_word("inner", c->inner, INNERS));
    TRY(check_word("dtype", c->dtype, DTYPES));
    TRY(check_word("scale", c->scale, SCALES));
    if (!kvb_layout_has(c->layout, c->dtype))
        return fail_dtype(c);
    TRY(check_range("ring", c->ring, 0, 1));
    TRY(check_range("batch", c->batch, 1, BATCH_MAX));
    TRY(check_range("kv_heads", c->kv_heads, 1, HEADS_MAX));
    TRY(check_range("head_dim", c->head_dim, 1, DIM_MAX));
    TRY(check_range("capacity", c->capacity, 1, tokens_max));
    TRY(check_range("pad", c->pad, 0, 1 << 20));
    TRY(kvb_check_tensor(c));
    if (c->pad % LINE)
        return kvb_fail(KVB_BAD_ARGUMENT, "pad is %lld; it must be a multiple of %d", (long long)c->pad, LINE);
    if (kvb_layouts[c->layout].paged) {
        TRY(check_range("block_tokens", c->block_tokens, 1, tokens_max));
        TRY(check_range("blocks", c->blocks, 1, INT32_MAX));
    }
    return check_size(c);
}

static int32_t check_lengths(const kvb_cache *c)
{
    if (!c->lengths)
        return fail_null("lengths");
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t high = c->ring ? tokens_max : c->capacity;
        if (c->lengths[b] < 0 || c->lengths[b] > high)
            return kvb_fail(KVB_BAD_ARGUMENT, "lengths[%lld] is %lld; allowed is 0 to the capacity, %lld", (long long)b,
                            (long long)c->lengths[b], (long long)high);
    }
    return KVB_OK;
}

/* `low` is -1 where a negative entry means skip. */
static int32_t check_table(const kvb_cache *c, int64_t seq, int64_t first, int64_t end, int32_t low)
{
    for (int64_t t = first, slot; t < end; t += at_most(c->block_tokens - slot % c->block_tokens, c->capacity - slot)) {
        slot = c->ring ? t % c->capacity : t;
        int64_t at = seq * c->table_stride + slot / c->block_tokens;
        if (c->table[at] >= c->blocks || c->table[at] < (low < 0 ? INT32_MIN : low))
            return kvb_fail(KVB_BAD_ARGUMENT, "table[%lld] is %d; the pool has blocks 0 to %lld", (long long)at,
                            c->table[at], (long long)c->blocks - 1);
    }
    return KVB_OK;
}

int32_t kvb_check_cache(const kvb_cache *c)
{
    TRY(kvb_check_shape(c));
    if (c->bytes <= 0 || !c->k || !c->v)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache is not planned and bound");
    kvb_cache again = *c;
    TRY(kvb_cache_plan(&again));
    if (again.row_bytes != c->row_bytes || again.token_stride != c->token_stride ||
        again.head_stride != c->head_stride || again.seq_stride != c->seq_stride ||
        again.scale_token_stride != c->scale_token_stride || again.scale_head_stride != c->scale_head_stride ||
        again.scale_seq_stride != c->scale_seq_stride || again.table_stride != c->table_stride ||
        again.plane_bytes != c->plane_bytes || again.scale_plane_bytes != c->scale_plane_bytes ||
        again.bytes != c->bytes)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache was planned for another shape");
    if (kvb_layouts[c->layout].paged && !c->table)
        return fail_null("table");
    return check_lengths(c);
}

int32_t kvb_check_same(const kvb_cache *c, const kvb_cache *before)
{
    if (c->layout != before->layout || c->inner != before->inner || c->dtype != before->dtype ||
        c->scale != before->scale || c->ring != before->ring || c->batch != before->batch ||
        c->kv_heads != before->kv_heads || c->head_dim != before->head_dim)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache was planned anew since the task was, for another shape");
    return KVB_OK;
}

/* A tier may lack a variant, and a CPU the instructions for it: nothing else is run in its place. */
static int32_t check_way(const kvb_decode *a)
{
    int32_t way = kvb_way_of(a->variant, a->cache->dtype);
    if (!kvb_has_way(a->isa, way))
        return kvb_fail(KVB_UNSUPPORTED, "variant %s: isa %s has no kernel for it", kvb_word("variant", a->variant),
                        kvb_word("isa", a->isa));
    if (!kvb_way_runs(a->isa, way))
        return kvb_fail(KVB_UNSUPPORTED, "variant %s: this CPU lacks the dot products that it takes on isa %s",
                        kvb_word("variant", a->variant), kvb_word("isa", a->isa));
    return KVB_OK;
}

int32_t kvb_check_decode(const kvb_decode *a, int32_t threads)
{
    if (!a)
        return fail_null("decode arguments");
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_cache(a->cache));
    if (!a->q)
        return fail_null("q");
    if (!a->out)
        return fail_null("out");
    const kvb_cache *c = a->cache;
    TRY(check_range("q_heads", a->q_heads, 1, HEADS_MAX));
    if (a->q_heads % c->kv_heads)
        return kvb_fail(KVB_BAD_ARGUMENT, "q_heads %lld is not a multiple of kv_heads %lld", (long long)a->q_heads,
                        (long long)c->kv_heads);
    TRY(check_range("window", a->window, 0, tokens_max));
    TRY(check_word("variant", a->variant, VARIANTS));
    if (kvb_reads(a->variant, c->layout, c->dtype) < 0)
        return kvb_fail(KVB_BAD_ARGUMENT, "variant %s has no kernel for the dtype %s in the layout %s",
                        kvb_word("variant", a->variant), kvb_word("dtype", c->dtype), kvb_word("layout", c->layout));
    if (a->run && a->variant != VARIANT_FLASH)
        return kvb_fail(KVB_BAD_ARGUMENT, "variant is %s; with a kernel of your own it must be flash",
                        kvb_word("variant", a->variant));
    TRY(check_word("schedule", a->schedule, SCHEDULES));
    TRY(check_range("wrap", a->wrap, 0, c->lengths[0]));
    if (!(a->scale >= 0.0f && a->scale <= 3.0e38f))
        return kvb_fail(KVB_BAD_ARGUMENT, "scale is %g; it must be finite and not negative", (double)a->scale);
    TRY(kvb_check_isa(a->isa));
    TRY(check_way(a));
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t first, end;
        kvb_attended(a, b, &first, &end);
        if (c->ring && end - first > c->capacity)
            return kvb_fail(KVB_BAD_ARGUMENT, "window: %lld tokens are attended, but the ring keeps capacity %lld",
                            (long long)(end - first), (long long)c->capacity);
        if (kvb_layouts[c->layout].paged)
            TRY(check_table(c, b, first, end, 0));
    }
    if (a->wrap && kvb_layouts[c->layout].paged)
        TRY(check_table(c, 0, 0, a->wrap, 0));
    return KVB_OK;
}

int32_t kvb_check_store(const kvb_store *a, int32_t threads)
{
    if (!a)
        return fail_null("store arguments");
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_cache(a->cache));
    if (!a->k)
        return fail_null("k");
    if (!a->v)
        return fail_null("v");
    TRY(check_range("tokens", a->tokens, 1, tokens_max));
    TRY(check_range("head_major", a->head_major, 0, 1));
    TRY(check_range("nt", a->nt, 0, 1));
    TRY(check_range("advance", a->advance, 0, 1));
    TRY(kvb_check_isa(a->isa));
    const kvb_cache *c = a->cache;
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t end = c->lengths[b] + a->tokens;
        if (end > (c->ring ? tokens_max : c->capacity))
            return kvb_fail(KVB_BAD_ARGUMENT, "tokens: sequence %lld would hold %lld of capacity %lld", (long long)b,
                            (long long)end, (long long)c->capacity);
        if (kvb_layouts[c->layout].paged)
            TRY(check_table(c, b, c->ring ? at_least(c->lengths[b], end - c->capacity) : c->lengths[b], end, -1));
    }
    return KVB_OK;
}

static int32_t check_buffer(const char *name, const void *buffer, bool needed)
{
    if (needed && !buffer)
        return fail_null(name);
    if (needed && (uintptr_t)buffer % LINE)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s must be aligned to %d bytes", name, LINE);
    return KVB_OK;
}

int32_t kvb_check_probe(const kvb_probe *a, int32_t threads)
{
    if (!a)
        return fail_null("probe arguments");
    TRY(kvb_check_threads(threads));
    if (a->op < OP_READ || a->op > OP_CLOCK)
        return kvb_fail(KVB_BAD_ARGUMENT, "op %d is not a probe", a->op);
    TRY(kvb_check_isa(a->isa));
    TRY(check_range("steps", a->steps, a->op >= OP_FLOPS, INT64_MAX / 1024));
    if (a->op == OP_FLOPS || a->op == OP_CLOCK)
        return KVB_OK;
    TRY(check_range("bytes", a->bytes, LINE, bytes_max));
    if (a->bytes % LINE)
        return kvb_fail(KVB_BAD_ARGUMENT, "bytes is %lld; it must be a multiple of %d", (long long)a->bytes, LINE);
    TRY(check_range("distance", a->distance, 0, 1 << 20));
    TRY(check_buffer("a", a->a, true));
    TRY(check_buffer("b", a->b, a->op == OP_COPY || a->op == OP_COPY_NT || a->op == OP_TRIAD));
    return check_buffer("c", a->c, a->op == OP_TRIAD);
}
