/* Makes the schedules of a cache's planes from a preset, for a variant of decode or the twin. */
#include "walk/walk.h"

int32_t kvb_schedule_default(void) { return SCHEDULE_DEFAULT; }

/* Return how many KV heads have rows that follow each other without a gap, token by token: all
 * heads of a token, or 1; 0 if there are gaps. */
static int64_t heads_behind(const kvb_decode *a, const kvb_plane *p)
{
    const int64_t heads = kvb_unit_heads(a);
    const bool behind =
        p->token_stride == heads * p->row_bytes && (heads == 1 || p->head_stride == p->row_bytes);
    return behind && !kvb_layouts[a->cache->layout].paged ? heads : 0;
}

/* Whether the stages read rows of several KV heads in turn: if the sums of all heads, or their q,
 * stay in L1 together with a token's rows. */
static bool in_turn(const kvb_decode *a, const kvb_preset *preset, const kvb_plane *p,
                    const kvb_half *half)
{
    const bool flash = a->variant == VARIANT_FLASH || a->variant == VARIANT_ROUND16;
    return flash && kvb_q_rows(a) <= half->in_turn && !kvb_scaled(p) &&
           p->token_stride + kvb_queries(a) * a->q_heads * p->dim * (int64_t)sizeof(float) <=
               preset->room;
}

/* Whether a plane's rows are read in address order, and if so whether each row is read whole. */
typedef struct in_order {
    bool rows;
    bool whole;
} in_order;

static in_order order_of(const kvb_decode *a, const kvb_preset *preset, const kvb_plane *p,
                         const kvb_half *half)
{
    const int64_t heads = preset->in_order ? heads_behind(a, p) : 0;
    in_order order = {.rows = heads && (kvb_formats[p->dtype].elements == 1 || p->cell)};
    order.whole = order.rows && half->whole && half->whole(kvb_q_rows(a), p->dim);
    return order;
}

/* Return the tokens of a block. `row`: bytes of a row, of the plane with the longer ones. If heads
 * are inside a token, a block has the rows of all heads. */
static int32_t tokens_of(const kvb_decode *a, const kvb_preset *preset, int64_t row, bool whole)
{
    const int64_t heads = kvb_unit_heads(a), token = row * heads;
    const bool paged = heads == 1 && kvb_layouts[a->cache->layout].paged;
    const bool doubled = preset->doubled && heads > 1 && LANES * token <= preset->block;
    const bool light = preset->block_light && heads > 1 && a->variant == VARIANT_DOT &&
                       kvb_qk_of(a)->half.whole && kvb_q_rows(a) <= 4;
    const int64_t bytes = whole   ? preset->block_whole
                          : paged ? preset->block_paged
                          : light ? preset->block_light
                                  : preset->block;
    return (int32_t)at_least(doubled ? 2 * LANES : LANES,
                             at_most(whole ? TILE : TILE_LISTED, bytes / token / LANES * LANES));
}

/* Return the rows of a run: few, and L1 must hold them and the next run. */
static int64_t run_of(const kvb_decode *a, const kvb_preset *preset, int64_t row, int64_t tokens)
{
    const int64_t most = at_most(preset->run_rows, preset->run / row / LANES * LANES);
    const int64_t rows = (kvb_q_rows(a) > 4 ? 2 : 1) * at_least(LANES, most);
    return tokens % rows ? LANES : rows;
}

/* Return the PRODUCTS_* of a plane's rows. */
static int32_t products_of(const kvb_decode *a, const kvb_plane *p)
{
    if (a->variant != VARIANT_DOT)
        return PRODUCTS_FLOATS;
    return kvb_formats[p->dtype].elements > 1 ? PRODUCTS_PACKS
           : kvb_formats[p->dtype].scaled     ? PRODUCTS_BYTES
                                              : PRODUCTS_BF16;
}

/* Set the schedules of a plane. If its rows are read in address order, they are those of `heads` KV
 * heads in turn, in runs of `run` rows. */
static void make_plane(const kvb_walk *walk, in_order order, int64_t heads, int64_t run,
                       kvb_plane_walk *w)
{
    const kvb_decode *a = walk->args;
    const kvb_preset *preset = walk->preset;
    const bool asks = preset->asks != ASKS_NOTHING,
               runs = a->variant != VARIANT_PERHEAD && !order.whole;
    w->rest = (kvb_schedule){
        .order = !asks                                      ? ORDER_PLAIN
                 : preset->to_l2 & products_of(a, w->plane) ? ORDER_LISTED_L2
                                                            : ORDER_LISTED,
        .kv_heads = 1,
        .distance =
            order.whole && kvb_q_rows(a) > FEW_Q_ROWS ? preset->distance_heads : preset->distance,
    };
    w->steady = w->rest;
    if (!order.rows)
        return;
    w->steady.order = runs ? ORDER_RUNS : ORDER_ROWS;
    w->steady.kv_heads = heads;
    w->steady.run_rows = runs                                     ? run
                         : kvb_formats[w->plane->dtype].bytes < 4 ? preset->slice_rows
                                                                  : preset->slice_rows_f32;
}

/* Heads of a token are read in turn only if both planes allow it. Blocks are long only if rows of
 * both planes are read whole. */
void kvb_schedule_make(kvb_walk *walk)
{
    const kvb_decode *a = walk->args;
    const kvb_preset *preset = walk->preset;
    const kvb_plane *k = &a->cache->k, *v = &a->cache->v;
    const kvb_half *qk = &kvb_qk_of(a)->half, *pv = &kvb_pv_of(a)->half;
    const int64_t heads = kvb_unit_heads(a), row = at_least(k->row_bytes, v->row_bytes);
    in_order of_k = order_of(a, preset, k, qk), of_v = order_of(a, preset, v, pv);
    if (heads > 1 &&
        !(of_k.rows && of_v.rows && in_turn(a, preset, k, qk) && in_turn(a, preset, v, pv)))
        of_k = of_v = (in_order){0};
    const bool whole = of_k.whole && of_v.whole;
    walk->cut.tokens = tokens_of(a, preset, row, whole);
    const int64_t run = run_of(a, preset, row, walk->cut.tokens);
    walk->cut.grain = !of_k.rows && !of_v.rows ? walk->cut.tokens : whole ? LANES : (int32_t)run;
    make_plane(walk, of_k, heads, run, &walk->k);
    make_plane(walk, of_v, heads, run, &walk->v);
}

/* The twin reads in the fastest way, whatever the stages do. A tile has the scales of one KV head
 * only, so rows with scales are not read in turn. */
void kvb_schedule_twin(kvb_walk *walk)
{
    const kvb_decode *a = walk->args;
    kvb_plane_walk *const planes[PLANES] = {&walk->k, &walk->v};
    bool whole = walk->preset->in_order;
    for (int i = 0; i < PLANES; i++) {
        const kvb_plane *p = planes[i]->plane;
        const int64_t heads = heads_behind(a, p);
        const bool turns = !kvb_scaled(p) && kvb_tier_of(a->isa)->qk[p->dtype].half.in_turn;
        whole = whole && (heads == 1 || (heads > 1 && turns));
    }
    for (int i = 0; i < PLANES; i++) {
        kvb_schedule *steady = &planes[i]->steady;
        if (steady->order == ORDER_PLAIN)
            continue;
        if (whole)
            steady->order = ORDER_ROWS;
        else if (steady->order >= ORDER_ROWS)
            steady->order = ORDER_LISTED_L2;
        steady->kv_heads = whole ? kvb_unit_heads(a) : 1;
    }
}
