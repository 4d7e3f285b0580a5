/* Counts what a decode and its twin move and compute. */
#include "cache/touched.h"
#include "decode/decode.h"

static kvb_reach attended(const kvb_touched *t, int64_t seq) { return kvb_attended(t->of, seq); }

/* Return the lines of a buffer. */
static double lines_in(double bytes) { return (double)(((int64_t)bytes + LINE - 1) / LINE); }

/* ---- the rows that the walk of a plan visits ------------------------------------------------- */

typedef struct visits {
    double rows; /* rows of each plane; perhead: counted for each query row */
    /* transposed blocks. A block that a cut or the end of a ring divides counts twice */
    double blocks;
    double in_place[PLANES]; /* rows whose scales are used in place */
} visits;

/* Add what a walk of these units visits. */
static void visit(const kvb_decode *a, const kvb_unit *unit, const kvb_unit *end, visits *v)
{
    kvb_walk walk;
    kvb_block block;
    kvb_walk_start(&walk, a, unit, end);
    for (kvb_walk_next(&walk, &block); block.unit; kvb_walk_next(&walk, &block)) {
        const double heads = (double)block.unit->heads, rows = heads * (block.count - block.lead);
        v->rows += rows;
        v->blocks += heads * (double)(round_up(block.count, LANES) / LANES);
        for (int32_t p = 0; p < PLANES; p++)
            v->in_place[p] += kvb_scales_in_place(kvb_plane_of(a->cache, p), &block) ? rows : 0.0;
    }
}

/* Return the bytes that the twin loads: rows with their padding, whole lines of blocks, and scales.
 */
static double twin_loads(const kvb_plane *p, const visits *v)
{
    const double rows =
        p->cell ? v->blocks * (double)kvb_block_bytes(p) : v->rows * (double)p->row_bytes;
    return rows + v->rows * kvb_scale_size(p);
}

int32_t kvb_traffic_twin(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .tokens_of = attended};
    visits v = {0};
    visit(a, plan->units, plan->units + plan->scan_units[plan->scans], &v);
    double rows = kvb_tokens(&all) * (double)c->kv_heads, of_rows, of_table;
    *t = (kvb_traffic){.kv = rows * kvb_row_sizes(c), .scales = rows * kvb_scale_sizes(c)};
    TRY(kvb_lines_of(&all, rows, &of_rows));
    t->table = kvb_table_bytes(&all, &of_table);
    t->line = LINE * (of_rows + of_table);
    t->compulsory = t->kv + t->scales + t->table;
    t->issued = twin_loads(&c->k, &v) + twin_loads(&c->v, &v) + t->table;
    return KVB_OK;
}

/* ---- how often loads ask for a row or a scale: once for all query rows that share one -------- */

/* Whether the tier turns rows of a plane. With prefetch, it turns both planes or none: turning only
 * K of 8-bit floats took up to five times as long from memory. */
static bool turns(const kvb_decode *a, const kvb_plane *p)
{
    const bool k = kvb_qk_of(a)->turned[0] && !a->cache->k.cell,
               v = kvb_pv_of(a)->turned[0] && !a->cache->v.cell;
    const bool asks = kvb_presets[a->schedule].asks != ASKS_NOTHING;
    return asks ? k && v : p == &a->cache->k ? k : v;
}

int32_t kvb_made_of(const kvb_decode *a, const kvb_plane *p)
{
    const bool many = kvb_q_rows(a) > kvb_most_of(a);
    const bool in_blocks = p == &a->cache->k ? kvb_qk_of(a)->transposed[0] != NULL
                                             : kvb_pv_of(a)->transposed[0] != NULL;
    if (a->variant == VARIANT_TWOPASS)
        return MADE_NOTHING;
    if (many && turns(a, p))
        return MADE_TURNED;
    /* 16-bit elements are converted to float32 by one or two instructions with each load: keeping
     * the floats took 0.99 to 1.17 times as long, on AVX2 and AVX-512 */
    const bool several = many && kvb_payload(p->dtype, 1) != 2;
    return (p->cell ? !in_blocks : several) && kvb_widens(a->isa, kvb_way_of(a->variant, p->dtype))
               ? MADE_FLOATS
               : MADE_NOTHING;
}

/* Return how often a row is loaded for `q_rows` query rows, of which `shared` share a load. Parts
 * have as many query rows as a call takes; stages take 1, 2, 4 or 8. A row that is converted or
 * turned is loaded once. A walk of perhead serves one query row. */
static double loads(const kvb_decode *a, const kvb_plane *p, int64_t q_rows, int32_t shared)
{
    const int64_t most = kvb_most_of(a), rest = q_rows % most,
                  slots = rest ? 1 << kvb_class(rest) : 0;
    if (a->variant == VARIANT_PERHEAD || kvb_made_of(a, p))
        return 1.0;
    return (double)(q_rows / most * ((most + shared - 1) / shared) + (slots + shared - 1) / shared);
}

/* Return the bytes of a row, loaded in steps of `step` elements. The last load may reach into the
 * padding; packed rows have no padding. */
static double loaded_row(const kvb_plane *p, int64_t step)
{
    const bool packed = kvb_formats[p->dtype].elements > 1;
    return (double)kvb_payload(p->dtype, packed ? p->dim : round_up(p->dim, step));
}

/* Return the bytes of transposed blocks that are loaded: up to the last cell with elements, or the
 * whole block if rows are packed or in quads, or only the elements if rows are converted to
 * float32. PV may load the scales of packs apart from the codes. */
static double loaded_blocks(const kvb_decode *a, const kvb_plane *p, const visits *v,
                            int64_t q_rows, int32_t shared)
{
    const int64_t bytes = kvb_payload(p->dtype, p->dim);
    if (kvb_made_of(a, p))
        return v->rows * (double)bytes;
    const bool in_cells = p->cell > 1 && !kvb_pack_scale(p->dtype);
    const int64_t block = in_cells ? LANES * round_up(bytes, p->cell) : kvb_block_bytes(p);
    const int32_t weighed = p == &a->cache->v ? kvb_pv_of(a)->shared_scales : 0;
    if (!weighed)
        return v->blocks * (double)block * loads(a, p, q_rows, shared);
    const int64_t packs = bytes / kvb_formats[p->dtype].bytes, scales = LANES * 2;
    return v->blocks * ((double)(block - packs * scales) * loads(a, p, q_rows, shared) +
                        2.0 * (double)(round_up(packs, 4) * scales) * loads(a, p, q_rows, weighed));
}

/* Return how many scales are loaded. A scale that is copied is loaded once in each walk. One that
 * is used in place (`in_place` rows) is loaded by the softmax for each query row; once if the row
 * is converted to float32; for each part if it is K and turned. */
static double scale_loads(const kvb_decode *a, const kvb_plane *p, int64_t q_rows, double rows,
                          double in_place)
{
    if (!kvb_scaled(p) || a->variant == VARIANT_PERHEAD)
        return rows;
    const int32_t made = kvb_made_of(a, p);
    const int64_t most = kvb_most_of(a), parts = (q_rows + most - 1) / most;
    const double each = made == MADE_FLOATS                        ? 1.0
                        : made == MADE_TURNED && p == &a->cache->k ? (double)parts
                                                                   : (double)q_rows;
    const double walks = a->variant == VARIANT_TWOPASS ? 3.0 : 1.0; /* scores, softmax, sums */
    return walks * (rows - in_place) + each * in_place;
}

/* Return the bytes that a decode loads for the units of one sequence with `q_rows` query rows. */
static double loads_of(const kvb_decode *a, const visits *v, int64_t q_rows)
{
    const kvb_plane *k = &a->cache->k, *p = &a->cache->v;
    const kvb_qk *qk = kvb_qk_of(a);
    const kvb_pv *pv = kvb_pv_of(a);
    const double of_k =
        k->cell ? loaded_blocks(a, k, v, q_rows, qk->shared_transposed)
                : v->rows * loaded_row(k, qk->half.step) * loads(a, k, q_rows, qk->half.shared);
    const double of_v =
        p->cell ? loaded_blocks(a, p, v, q_rows, pv->shared_transposed)
                : v->rows * loaded_row(p, pv->half.step) * loads(a, p, q_rows, pv->half.shared);
    return of_k + of_v +
           scale_loads(a, k, q_rows, v->rows, v->in_place[KVB_K]) * kvb_scale_size(k) +
           scale_loads(a, p, q_rows, v->rows, v->in_place[KVB_V]) * kvb_scale_size(p);
}

static double decode_loads(const kvb_decode *a, const kvb_plan *plan)
{
    const kvb_unit *unit = plan->units, *end = unit + plan->scan_units[plan->scans];
    double bytes = 0.0;
    while (unit < end) {
        const kvb_unit *next = unit;
        visits v = {0};
        while (next < end && next->seq == unit->seq)
            next++;
        visit(a, unit, next, &v);
        bytes += loads_of(a, &v, kvb_queries_of(a, unit->seq) * kvb_group_of(a));
        unit = next;
    }
    return bytes;
}

/* Count all queries, and the tokens that they attend to, for each query by itself. */
static double queries_in_all(const kvb_decode *a, double *tokens)
{
    double queries = 0.0;
    *tokens = 0.0;
    for (int64_t seq = 0; seq < a->cache->batch; seq++) {
        const int64_t count = kvb_queries_of(a, seq);
        queries += (double)count;
        for (int64_t query = 0; query < count; query++) {
            const kvb_seen seen = kvb_seen_by(a, seq, query);
            *tokens += (double)kvb_tokens_seen(&seen);
        }
    }
    return queries;
}

int32_t kvb_traffic_decode(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    double tokens;
    const double q_vectors = queries_in_all(a, &tokens) * (double)a->q_heads;
    const double q = q_vectors * (double)c->k.dim * sizeof *a->q,
                 out = q_vectors * (double)c->v.dim * sizeof *a->out;
    const double channels = c->k.channel ? (double)(c->kv_heads * c->k.dim) * sizeof *a->q : 0.0,
                 vectors = q + out + channels;
    TRY(kvb_traffic_twin(a, plan, t));
    t->flops = 2.0 * tokens * (double)(a->q_heads * (c->k.dim + c->v.dim));
    t->compulsory += vectors;
    /* the loads of a plug-in are unknown */
    t->issued = a->run ? t->compulsory : decode_loads(a, plan) + t->table + vectors;
    t->line += LINE * (lines_in(q) + lines_in(out) + lines_in(channels));
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
    return KVB_OK;
}
