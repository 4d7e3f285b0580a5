/* Bytes and FLOPs, each counted once and here. */
#include "core.h"

/* Lines that `count` consecutive objects of `bytes` touch when they lie `stride` apart from a line's start. */
static double lines_of(int64_t count, int64_t bytes, int64_t stride)
{
    if (stride >= LINE)
        return (double)count * (double)(round_up(bytes, LINE) / LINE);
    return (double)((count * stride + LINE - 1) / LINE);
}

/* Tokens that all sequences of a decode attend to, together. */
static double attended(const kvb_decode *a)
{
    double tokens = 0.0;
    for (int64_t b = 0; b < a->cache->batch; b++) {
        int64_t first, end;
        kvb_attended(a, b, &first, &end);
        tokens += (double)(end - first);
    }
    return tokens;
}

static double scale_bytes(const kvb_cache *c) { return kvb_formats[c->dtype].scaled ? kvb_scale_bytes[c->scale] : 0; }

static double payload(const kvb_cache *c) { return (double)(c->head_dim * kvb_formats[c->dtype].element_bytes); }

static double table_bytes(const kvb_decode *a)
{
    const kvb_cache *c = a->cache;
    double entries = 0.0;
    for (int64_t b = 0; kvb_layouts[c->layout].paged && b < c->batch; b++) {
        int64_t first, end;
        kvb_attended(a, b, &first, &end);
        if (end > first)
            entries += (double)((end - 1) / c->block_tokens - first / c->block_tokens + 1);
    }
    return entries * sizeof(int32_t);
}

/* Times that a K or V row is loaded: once per pass over the group's heads; a converted row is loaded once. */
static double walks(const kvb_decode *a)
{
    int64_t group = a->q_heads / a->cache->kv_heads, pass = kvb_tier_of(a->isa)->qk_heads;
    if (a->variant == VARIANT_PERHEAD)
        return (double)group;
    if (a->variant == VARIANT_FLASH && group > HEADS && a->cache->dtype != DTYPE_F32)
        return 1.0;
    return (double)((group + pass - 1) / pass);
}

static void count_rows(const kvb_decode *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    double rows = attended(a) * (double)c->kv_heads;
    double scale_lines = 0.0;
    for (int64_t b = 0; kvb_formats[c->dtype].scaled && b < c->batch; b++) {
        int64_t first, end;
        kvb_attended(a, b, &first, &end);
        int64_t run = kvb_heads_inner(c) ? (end - first) * c->kv_heads : end - first;
        scale_lines += lines_of(run, kvb_scale_bytes[c->scale], kvb_scale_bytes[c->scale]) *
                       (double)(kvb_heads_inner(c) ? 1 : c->kv_heads);
    }
    t->kv = 2.0 * rows * payload(c);
    t->scales = 2.0 * rows * scale_bytes(c);
    t->table = table_bytes(a);
    t->line = 2.0 * LINE * (rows * (double)(c->row_bytes / LINE) + scale_lines) + t->table;
}

void kvb_traffic_twin(const kvb_decode *a, kvb_traffic *t)
{
    *t = (kvb_traffic){0};
    count_rows(a, t);
    t->compulsory = t->kv + t->scales + t->table;
    t->issued = t->compulsory;
}

void kvb_traffic_decode(const kvb_decode *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    double ends = 2.0 * (double)(c->batch * a->q_heads * c->head_dim) * sizeof(float); /* q and out */
    *t = (kvb_traffic){0};
    count_rows(a, t);
    t->flops = 4.0 * attended(a) * (double)(a->q_heads * c->head_dim);
    t->compulsory = t->kv + t->scales + t->table + ends;
    t->issued = (t->kv + t->scales) * walks(a) + t->table + ends;
    t->line += ends;
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
}

/* Stores count what they are given and what they keep; padding is in `line` only. */
void kvb_traffic_store(const kvb_store *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    double rows = (double)(c->batch * a->tokens * c->kv_heads), source = rows * (double)c->head_dim * sizeof(float);
    *t = (kvb_traffic){0};
    t->kv = 2.0 * rows * payload(c);
    t->scales = 2.0 * rows * scale_bytes(c);
    t->compulsory = t->kv + t->scales + 2.0 * source;
    t->issued = 2.0 * rows * (double)c->row_bytes + t->scales + 2.0 * source;
    t->line = 2.0 * rows * (double)c->row_bytes + 2.0 * source +
              2.0 * LINE * (kvb_formats[c->dtype].scaled ? rows : 0.0);
}

void kvb_traffic_probe(const kvb_probe *a, kvb_traffic *t)
{
    static const int streams[OPS] = {[OP_READ] = 1, [OP_WRITE] = 1, [OP_WRITE_NT] = 1, [OP_COPY] = 2, [OP_COPY_NT] = 2,
                                     [OP_TRIAD] = 3};
    double sweeps = (double)at_least(1, a->steps);
    *t = (kvb_traffic){0};
    t->compulsory = t->issued = t->line = streams[a->op] * sweeps * (double)a->bytes;
    if (a->op == OP_TRIAD)
        t->flops = 2.0 * sweeps * (double)a->bytes / sizeof(float);
    if (a->op == OP_LATENCY) {
        t->issued = (double)a->steps * sizeof(void *);
        t->line = (double)a->steps * LINE;
    }
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
}
