/* flash: one pass. Per tile: scores of the whole group, softmax in place, weighted sum of V. */
#include "decode/decode.h"

static void softmax(const kvb_tier *tier, const kvb_tile *tile, const kvb_group *group,
                    float *scores, bool scaled)
{
    for (int64_t h = 0; h < tile->schedule->kv_heads; h++) {
        tier->max(tile, group + h, scores + h * HEAD_SCORES, scaled);
        tier->exp(tile, group + h, scores + h * HEAD_SCORES, scaled);
    }
}

/* The stages of one tile for one group of heads. Adds the clock ticks of each stage where they are
 * asked for. */
static void fold(const kvb_decode_task *task, const kvb_tile *tile, const kvb_group *group,
                 float *scores, double *ticks)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    const kvb_rows *rows = &tier->rows[task->row_kernel];
    bool scaled = kvb_formats[task->args.cache->k.dtype].scaled;
    uint64_t from = ticks ? kvb_ticks() : 0;
    kvb_score(rows, tile, group, scores);
    if (ticks)
        kvb_lap(&ticks[0], &from);
    softmax(tier, tile, group, scores, scaled);
    if (ticks)
        kvb_lap(&ticks[1], &from);
    rows->pv[kvb_class(group->heads)](tile, group, scores);
    if (ticks)
        kvb_lap(&ticks[2], &from);
}

/* Rows as float32 in scratch, while as many of the schedule's are asked for. Groups of more than
 * HEADS share them. */
static void widen(const kvb_decode_task *task, const kvb_tile *tile, kvb_places rows,
                  kvb_places next, const float *scales, float *to)
{
    const kvb_cache *c = task->args.cache;
    void (*decode)(const uint8_t *, float, int64_t, float *) =
        kvb_tier_of(task->args.isa)->rows[task->row_kernel].decode;
    const bool scaled = kvb_formats[c->k.dtype].scaled, asks = tile->schedule->order != ORDER_PLAIN;
    for (int32_t t = tile->lead; t < tile->count; t++) {
        for (int64_t b = 0; asks && b < c->k.row_bytes; b += LINE)
            kvb_fetch(kvb_row_next(&tile->next, next, t, c->k.row_bytes) + b,
                      tile->schedule->order != ORDER_LISTED);
        decode(kvb_row_at(rows, t), scaled ? scales[t] : 1.0f, c->head_dim, to + t * task->dim_pad);
    }
}

/* A group of many heads: convert K once, score every part; then convert V into the same scratch. K
 * that is transposed is read by every part as it is: its scores still want their scales. */
static void fold_wide(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups,
                      double *ticks)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    const kvb_rows *rows = &tier->rows[DTYPE_F32];
    kvb_tile *tile = &state->tile, *wide = &state->wide_tile;
    const kvb_schedule *schedule = tile->schedule;
    const bool as_it_is = tile->k_block > 0,
               scaled = as_it_is && kvb_formats[task->args.cache->k.dtype].scaled;
    wide->count = tile->count;
    wide->lead = tile->lead;
    wide->k_block = 0;
    wide->schedule = &kvb_plain;
    wide->k = wide->v = (kvb_places){(const uint8_t *)state->wide, state->wide_rows};
    for (int32_t t = 0; t < round_up(tile->count, LANES); t++)
        state->wide_rows[t] =
            at_most(t, tile->count - 1) * task->dim_pad * (int64_t)sizeof *state->wide;
    uint64_t from = ticks ? kvb_ticks() : 0;
    if (!as_it_is)
        widen(task, tile, tile->k, tile->next.k, tile->k_scale, state->wide);
    for (int64_t p = 0; p < task->parts; p++) {
        kvb_score(as_it_is ? &tier->rows[task->row_kernel] : rows, as_it_is ? tile : wide,
                  &groups[p], state->scores + p * HEAD_SCORES);
        tile->schedule = &kvb_plain; /* the first part has asked */
    }
    tile->schedule = schedule;
    if (ticks)
        kvb_lap(&ticks[0], &from);
    for (int64_t p = 0; p < task->parts; p++) {
        tier->max(tile, &groups[p], state->scores + p * HEAD_SCORES, scaled);
        tier->exp(wide, &groups[p], state->scores + p * HEAD_SCORES, false);
    }
    if (ticks)
        kvb_lap(&ticks[1], &from);
    widen(task, tile, tile->v, tile->next.v, tile->v_scale, state->wide);
    for (int64_t p = 0; p < task->parts; p++)
        rows->pv[kvb_class(groups[p].heads)](wide, &groups[p], state->scores + p * HEAD_SCORES);
    if (ticks)
        kvb_lap(&ticks[2], &from);
}

static void fold_block(const kvb_decode_task *task, kvb_state *state, const kvb_walk *walk,
                       double *ticks)
{
    for (int64_t h = 0, heads; h < state->pair.block->unit->heads; h += heads) {
        kvb_group *groups = state->groups + h * task->parts;
        kvb_tile_make(walk, &state->pair, h, false, &state->tile, &state->lists);
        heads = state->tile.schedule->kv_heads;
        if (task->parts > 1 && kvb_widens(task->args.isa, task->row_kernel)) {
            fold_wide(task, state, groups, ticks);
            continue;
        }
        for (int64_t p = 0; p < task->parts; p++) {
            fold(task, &state->tile, &groups[p], state->scores, ticks);
            state->tile.schedule = &kvb_plain; /* the first part has asked */
        }
    }
}

void kvb_flash(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    kvb_pair *pair = &state->pair;
    for (kvb_pair_start(pair, walk); pair->block->unit; kvb_pair_next(pair, walk)) {
        if (pair->block->first == 0)
            kvb_unit_begin(task, state, pair->block->unit);
        fold_block(task, state, walk, ticks);
        if (pair->next->unit != pair->block->unit)
            kvb_unit_end(task, state, pair->block->unit);
    }
}
