/* What a decode and its twin move and compute. */
#include "cache/touched.h"
#include "decode/decode.h"

static void attended(const kvb_touched *t, int64_t seq, int64_t *first, int64_t *end)
{
    kvb_attended(t->of, seq, first, end);
}

/* Lines of a buffer that is walked as a whole. */
static double lines_in(double bytes) { return (double)(((int64_t)bytes + LINE - 1) / LINE); }

/* ---- what the walk of a plan visits ---------------------------------------------------------- */

typedef struct visits {
    double rows; /* of each plane; perhead's query heads each walk by themselves */
    /* of K that is transposed: one that a ring ends in, or a cut, is visited from both sides */
    double blocks;
    double in_place; /* rows whose scales are taken where they lie */
} visits;

static visits visits_of(const kvb_decode *a, const kvb_plan *plan)
{
    visits v = {0};
    kvb_walk walk;
    kvb_block block;
    kvb_walk_start(&walk, a, plan->units, plan->units + plan->row_units[plan->rows]);
    for (kvb_walk_next(&walk, &block); block.unit; kvb_walk_next(&walk, &block)) {
        const double heads = (double)block.unit->heads, rows = heads * (block.count - block.lead);
        v.rows += rows;
        v.blocks += heads * (double)(round_up(block.count, LANES) / LANES);
        v.in_place += kvb_scales_in_place(a, &block) ? rows : 0.0;
    }
    return v;
}

static bool transposed(const kvb_decode *a) { return kvb_layouts[a->cache->layout].transposed; }

/* Whole rows, with their padding, and whole lines of blocks. */
static double twin_loads(const kvb_decode *a, const visits *v)
{
    const kvb_cache *c = a->cache;
    const double row = (double)c->k.row_bytes;
    const double k = transposed(a) ? v->blocks * (double)kvb_block_bytes(c) : v->rows * row;
    return k + v->rows * (row + 2.0 * kvb_scale_size(c));
}

int32_t kvb_traffic_twin(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    const visits v = visits_of(a, plan);
    double rows = kvb_tokens(&all) * (double)c->kv_heads, of_rows, of_table;
    *t =
        (kvb_traffic){.kv = 2.0 * rows * kvb_row_size(c), .scales = 2.0 * rows * kvb_scale_size(c)};
    TRY(kvb_lines_of(&all, rows, &of_rows));
    t->table = kvb_table_bytes(&all, &of_table);
    t->line = LINE * (of_rows + of_table);
    t->compulsory = t->kv + t->scales + t->table;
    t->issued = twin_loads(a, &v) + t->table;
    return KVB_OK;
}

/* ---- how often loads ask for a row or a scale: once for all heads that share one ------------- */

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
    return (double)(group / HEADS * ((HEADS + shared - 1) / shared) +
                    (slots + shared - 1) / shared);
}

/* A converted row is loaded once. K that is transposed is not converted beforehand. A walk of
 * perhead serves one head. */
static double loads(const kvb_decode *a, bool k)
{
    const kvb_rows *rows = kvb_rows_of(a);
    int64_t group = a->q_heads / a->cache->kv_heads;
    if (a->variant == VARIANT_PERHEAD || (wide(a) && !(k && transposed(a))))
        return 1.0;
    return loads_of(group, k && transposed(a) ? rows->qk_t_heads
                           : k                ? rows->qk_heads
                                              : rows->pv_heads);
}

/* Bytes of a row, loaded in steps of so many elements: the last one may reach into the padding.
 * Packed rows have none. */
static double loaded_row(const kvb_cache *c, int64_t step)
{
    const bool packed = kvb_formats[c->k.dtype].elements > 1;
    return (double)kvb_payload(c->k.dtype, packed ? c->head_dim : round_up(c->head_dim, step));
}

/* And of a block of transposed K, to the end of its last cells with elements. */
static double loaded_block(const kvb_cache *c)
{
    const int64_t row = round_up(kvb_payload(c->k.dtype, c->head_dim), kvb_cell_bytes(c->k.dtype));
    return (double)(LANES * row);
}

/* Collected ones are loaded with each walk, for all heads of the group; from their place for each
 * head by softmax, or once with a row that is converted. */
static double scale_loads(const kvb_decode *a, const visits *v)
{
    const double group = (double)(a->q_heads / a->cache->kv_heads);
    if (!kvb_formats[a->cache->k.dtype].scaled || a->variant == VARIANT_PERHEAD)
        return 2.0 * v->rows;
    double of_k = wide(a) && !transposed(a) ? 1.0 : group, of_v = wide(a) ? 1.0 : group;
    double walks = a->variant == VARIANT_TWOPASS ? 3.0 : 1.0; /* scores, softmax, sums */
    return 2.0 * walks * (v->rows - v->in_place) + (of_k + of_v) * v->in_place;
}

static double decode_loads(const kvb_decode *a, const visits *v)
{
    const kvb_cache *c = a->cache;
    const kvb_rows *rows = kvb_rows_of(a);
    const double k =
        transposed(a) ? v->blocks * loaded_block(c) : v->rows * loaded_row(c, rows->k_step);
    return k * loads(a, true) + v->rows * loaded_row(c, rows->v_step) * loads(a, false) +
           scale_loads(a, v) * kvb_scale_size(c);
}

int32_t kvb_traffic_decode(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    double vector = (double)(c->batch * a->q_heads * c->head_dim); /* elements of q, and of out */
    const double vectors = 2.0 * vector * sizeof *a->q;
    const visits v = visits_of(a, plan);
    TRY(kvb_traffic_twin(a, plan, t));
    t->flops = 4.0 * kvb_tokens(&all) * (double)(a->q_heads * c->head_dim);
    t->compulsory += vectors;
    /* nobody knows what a plug-in loads */
    t->issued = a->run ? t->compulsory : decode_loads(a, &v) + t->table + vectors;
    t->line += 2.0 * LINE * lines_in(vector * sizeof *a->q);
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
    return KVB_OK;
}
