/* What a decode and its twin move and compute. */
#include "cache/touched.h"
#include "decode/decode.h"

static void attended(const kvb_touched *t, int64_t seq, int64_t *first, int64_t *end)
{
    kvb_attended(t->of, seq, first, end);
}

/* Lines of a buffer that is walked as a whole. */
static double lines_in(double bytes) { return (double)(((int64_t)bytes + LINE - 1) / LINE); }

int32_t kvb_traffic_twin(const kvb_decode *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    double rows = kvb_tokens(&all) * (double)c->kv_heads, of_rows, of_table;
    *t = (kvb_traffic){.kv = 2.0 * rows * kvb_row_size(c), .scales = 2.0 * rows * kvb_scale_size(c)};
    TRY(kvb_lines_of(&all, rows, &of_rows));
    t->table = kvb_table_bytes(&all, &of_table);
    t->line = LINE * (of_rows + of_table);
    t->compulsory = t->kv + t->scales + t->table;
    t->issued = t->compulsory + (kvb_k_rows(&all, rows) - rows) * kvb_row_size(c);
    return KVB_OK;
}

/* ---- how often loads ask for a row or a scale: once for all heads that share one, as tiers say ------------------- */

/* A group of more than HEADS heads, whose rows are made floats first. */
static bool wide(const kvb_decode *a)
{
    return a->variant != VARIANT_TWOPASS && a->q_heads / a->cache->kv_heads > HEADS &&
           kvb_widens(a->isa, kvb_row_kernel_of(a->variant, a->cache->k.dtype));
}

/* Of a group, in parts of at most HEADS heads; stages take 1, 2, 4 or 8. */
static double loads_of(int64_t group, int64_t shared)
{
    int64_t rest = group % HEADS, slots = rest ? 1 << kvb_class(rest) : 0;
    return (double)(group / HEADS * ((HEADS + shared - 1) / shared) + (slots + shared - 1) / shared);
}

/* A converted row is loaded once. K that is transposed is not converted beforehand. */
static double loads(const kvb_decode *a, bool k)
{
    const kvb_rows *rows = kvb_rows_of(a);
    const bool transposed = k && kvb_layouts[a->cache->layout].transposed;
    int64_t group = a->q_heads / a->cache->kv_heads;
    if (a->variant == VARIANT_PERHEAD)
        return (double)group;
    if (wide(a) && !transposed)
        return 1.0;
    return loads_of(group, transposed ? rows->qk_t_heads : k ? rows->qk_heads : rows->pv_heads);
}

/* Rows whose scales the tiles of a plan take in their place. */
static double rows_in_place(const kvb_decode *a, const kvb_plan *plan)
{
    double rows = 0.0;
    kvb_walk walk;
    kvb_block block;
    kvb_walk_start(&walk, a, plan->units, plan->units + plan->row_units[plan->rows]);
    for (kvb_walk_next(&walk, &block); block.unit; kvb_walk_next(&walk, &block))
        if (kvb_scales_in_place(a, &block))
            rows += (double)(block.unit->heads * (block.count - block.lead));
    return rows;
}

/* Collected ones are loaded with each walk, for all heads of the group; from their place for each head by softmax, or
 * once with a row that is converted. */
static double scale_loads(const kvb_decode *a, const kvb_plan *plan, double rows)
{
    const double group = (double)(a->q_heads / a->cache->kv_heads);
    if (!kvb_formats[a->cache->k.dtype].scaled || a->variant == VARIANT_PERHEAD)
        return 2.0 * group * rows;
    double of_k = wide(a) && !kvb_layouts[a->cache->layout].transposed ? 1.0 : group, of_v = wide(a) ? 1.0 : group;
    double walks = a->variant == VARIANT_TWOPASS ? 3.0 : 1.0; /* scores, softmax, sums */
    double there = rows_in_place(a, plan);
    return 2.0 * walks * (rows - there) + (of_k + of_v) * there;
}

int32_t kvb_traffic_decode(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    double vector = (double)(c->batch * a->q_heads * c->head_dim); /* elements of q, and of out */
    double rows = kvb_tokens(&all) * (double)c->kv_heads;
    TRY(kvb_traffic_twin(a, t));
    t->flops = 4.0 * kvb_tokens(&all) * (double)(a->q_heads * c->head_dim);
    t->compulsory += 2.0 * vector * sizeof *a->q;
    t->issued = t->compulsory;
    if (!a->run) /* nobody knows what a plug-in loads */
        t->issued += (kvb_k_rows(&all, rows) * loads(a, true) + rows * loads(a, false)) * kvb_row_size(c) - t->kv +
                     scale_loads(a, plan, rows) * kvb_scale_size(c) - t->scales;
    t->line += 2.0 * LINE * lines_in(vector * sizeof *a->q);
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
    return KVB_OK;
}
