/* What a decode and its twin move and compute. */
#include "cache/touched.h"
#include "decode/traffic.h"

static void attended(const kvb_touched *t, int64_t seq, int64_t *first, int64_t *end)
{
    kvb_attended(t->of, seq, first, end);
}

/* Lines of a buffer that is walked as a whole. */
static double lines_in(double bytes) { return (double)(((int64_t)bytes + LINE - 1) / LINE); }

static int32_t count_rows(const kvb_decode *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    double rows = kvb_tokens(&all) * (double)c->kv_heads, of_rows, of_table;
    int32_t code = kvb_lines_of(&all, rows, &of_rows);
    *t = (kvb_traffic){.kv = 2.0 * rows * kvb_row_size(c), .scales = 2.0 * rows * kvb_scale_size(c)};
    t->table = kvb_table_bytes(&all, &of_table);
    t->line = LINE * (of_rows + of_table);
    return code;
}

int32_t kvb_traffic_twin(const kvb_decode *a, kvb_traffic *t)
{
    const kvb_touched all = {.cache = a->cache, .of = a, .tokens_of = attended};
    double rows = kvb_tokens(&all) * (double)a->cache->kv_heads;
    int32_t code = count_rows(a, t);
    t->compulsory = t->kv + t->scales + t->table;
    t->issued = t->compulsory + (kvb_k_rows(&all, rows) - rows) * kvb_row_size(a->cache);
    return code;
}

int32_t kvb_traffic_decode(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    double vector = (double)(c->batch * a->q_heads * c->head_dim); /* elements of q, and of out */
    int32_t code = count_rows(a, t);
    t->flops = 4.0 * kvb_tokens(&all) * (double)(a->q_heads * c->head_dim);
    t->compulsory = t->kv + t->scales + t->table + 2.0 * vector * sizeof *a->q;
    double rows = kvb_tokens(&all) * (double)c->kv_heads;
    t->issued = t->compulsory;
    if (!a->run) /* nobody knows what a plug-in loads */
        t->issued += (kvb_k_rows(&all, rows) * kvb_loads(a, true) + rows * kvb_loads(a, false)) * kvb_row_size(c) - t->kv +
                     kvb_scale_loads(a, plan, rows) * kvb_scale_size(c) - t->scales;
    t->line += 2.0 * LINE * lines_in(vector * sizeof *a->q);
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
    return code;
}
