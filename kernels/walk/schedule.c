/* A preset made a schedule: that of a cache's rows, as a variant of decode or the twin reads them.
 */
#include "walk/walk.h"

int32_t kvb_schedule_default(void) { return SCHEDULE_DEFAULT; }

/* KV heads whose rows lie one behind another without a gap, token by token: those of a token, or
 * one; 0 where there are gaps. Packed rows do, too. */
static int64_t heads_behind(const kvb_decode *a)
{
    const kvb_cache *c = a->cache;
    const int64_t heads = kvb_unit_heads(a);
    const bool behind = c->k.token_stride == heads * c->k.row_bytes &&
                        (heads == 1 || c->k.head_stride == c->k.row_bytes);
    return behind && !kvb_layouts[c->layout].paged ? heads : 0;
}

/* Whether the stages take rows of several KV heads in turn: where sums of all heads, or their q,
 * stay in L1 beside a token's rows. */
static bool in_turn(const kvb_decode *a, const kvb_preset *preset)
{
    const kvb_cache *c = a->cache;
    const bool flash = a->variant == VARIANT_FLASH || a->variant == VARIANT_ROUND16;
    return flash && a->q_heads / c->kv_heads <= kvb_rows_of(a)->in_turn &&
           !kvb_formats[c->k.dtype].scaled &&
           c->k.token_stride + a->q_heads * c->head_dim * (int64_t)sizeof(float) <= preset->room;
}

/* Tokens of a block. Where heads lie inside a token, all of them are taken together. */
static int32_t tokens_of(const kvb_decode *a, const kvb_preset *preset, bool whole)
{
    const int64_t heads = kvb_unit_heads(a), token = a->cache->k.row_bytes * heads;
    const bool paged = heads == 1 && kvb_layouts[a->cache->layout].paged;
    const bool doubled = preset->doubled && heads > 1 && LANES * token <= preset->block;
    const bool light = preset->block_light && heads > 1 && a->variant == VARIANT_DOT &&
                       kvb_rows_of(a)->whole && a->q_heads <= 4 * a->cache->kv_heads;
    const int64_t bytes = whole   ? preset->block_whole
                          : paged ? preset->block_paged
                          : light ? preset->block_light
                                  : preset->block;
    return (int32_t)at_least(doubled ? 2 * LANES : LANES,
                             at_most(whole ? TILE : TILE_LISTED, bytes / token / LANES * LANES));
}

static bool many_heads(const kvb_decode *a) { return a->q_heads / a->cache->kv_heads > 4; }

/* Rows of a run: what L1 has room for beside the next run, in few rows. */
static int64_t run_of(const kvb_decode *a, const kvb_preset *preset, int64_t tokens)
{
    const int64_t most =
        at_most(preset->run_rows, preset->run / a->cache->k.row_bytes / LANES * LANES);
    const int64_t rows = (many_heads(a) ? 2 : 1) * at_least(LANES, most);
    return tokens % rows ? LANES : rows;
}

/* Rows one behind another, in the order of addresses: `heads` KV heads in turn, whole or by runs.
 */
static void order_rows(const kvb_decode *a, const kvb_preset *preset, int64_t heads, bool whole,
                       kvb_schedule *s)
{
    const bool runs = a->variant != VARIANT_PERHEAD && !whole;
    s->order = runs ? ORDER_RUNS : ORDER_ROWS;
    s->kv_heads = heads;
    s->grain = whole ? LANES : (int32_t)run_of(a, preset, s->tokens);
    s->run_rows = runs                                       ? s->grain
                  : kvb_formats[a->cache->k.dtype].bytes < 4 ? preset->slice_rows
                                                             : preset->slice_rows_f32;
}

void kvb_schedule_make(const kvb_decode *a, kvb_schedule *steady, kvb_schedule *rest)
{
    const kvb_preset *preset = &kvb_presets[a->schedule];
    const kvb_rows *rows = kvb_rows_of(a);
    const int64_t group = a->q_heads / a->cache->kv_heads,
                  heads = preset->in_order ? heads_behind(a) : 0;
    const bool in_order =
        heads && kvb_formats[a->cache->k.dtype].elements == 1 && (heads == 1 || in_turn(a, preset));
    const bool whole = in_order && rows->whole && rows->whole(group, a->cache->head_dim);
    const int32_t listed =
        preset->asks ? preset->to_l2 ? ORDER_LISTED_L2 : ORDER_LISTED : ORDER_PLAIN;
    *rest = (kvb_schedule){.order = listed,
                           .streams = preset->streams,
                           .kv_heads = 1,
                           .tokens = tokens_of(a, preset, whole)};
    rest->grain = rest->tokens;
    rest->distance = whole && group > FEW_HEADS ? preset->distance_heads : preset->distance;
    *steady = *rest;
    if (in_order)
        order_rows(a, preset, heads, whole, steady);
}

/* It is the fastest way to read, whatever the stages do. A tile has the scales of one KV head, so
 * those of scaled formats are not read in turn. */
void kvb_schedule_twin(const kvb_decode *a, kvb_schedule *steady)
{
    const int64_t heads = kvb_presets[a->schedule].in_order ? heads_behind(a) : 0;
    const bool scaled = kvb_formats[a->cache->k.dtype].scaled;
    const bool in_turn =
        heads > 1 && !scaled && kvb_tier_of(a->isa)->rows[a->cache->k.dtype].in_turn;
    const bool whole = heads == 1 || in_turn;
    if (steady->order == ORDER_PLAIN)
        return;
    if (whole)
        steady->order = ORDER_ROWS;
    else if (steady->order >= ORDER_ROWS)
        steady->order = ORDER_LISTED_L2;
    steady->kv_heads = whole ? heads : 1;
}
