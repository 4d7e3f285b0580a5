/* flash: one pass. Per tile: scores of the whole group, softmax in place, weighted sum of V. */
#include "decode/decode.h"

static void softmax(const kvb_tier *tier, const kvb_tile *tile, const kvb_group *group,
                    float *scores)
{
    for (int64_t h = 0; h < tile->k.schedule->kv_heads; h++) {
        tier->max(tile, group + h, scores + h * HEAD_SCORES);
        tier->exp(tile, group + h, scores + h * HEAD_SCORES);
    }
}

/* The stages of one tile for one group. Adds the clock ticks of each stage where they are asked
 * for. */
static void fold(const kvb_decode_task *task, const kvb_tile *tile, const kvb_group *group,
                 float *scores, double *ticks)
{
    const kvb_decode *a = &task->args;
    uint64_t from = ticks ? kvb_ticks() : 0;
    kvb_score(kvb_qk_of(a), tile, group, scores);
    if (ticks)
        kvb_lap(&ticks[0], &from);
    softmax(kvb_tier_of(a->isa), tile, group, scores);
    if (ticks)
        kvb_lap(&ticks[1], &from);
    kvb_add_up(kvb_pv_of(a), tile, group, scores);
    if (ticks)
        kvb_lap(&ticks[2], &from);
}

/* ---- rows made floats: for more query rows than a call folds, or where no half reads blocks -- */

/* Rows as float32 in scratch, while as many of the schedule's are asked for. */
static void widen(const kvb_decode_task *task, const kvb_plane *plane, const kvb_tile *tile,
                  const kvb_side *side, int64_t pad, float *to)
{
    const kvb_decode *a = &task->args;
    const kvb_codec *codec = &kvb_tier_of(a->isa)->codecs[kvb_way_of(a->variant, plane->dtype)];
    const int32_t order = side->schedule->order;
    _Alignas(LINE) uint8_t beside[DIM_MAX * 4];
    for (int32_t t = tile->lead; t < tile->count; t++) {
        for (int64_t b = 0; order != ORDER_PLAIN && b < side->bytes; b += LINE)
            kvb_fetch(kvb_row_asked(side, t) + b, order != ORDER_LISTED);
        const uint8_t *row = kvb_side_row(plane->dtype, side, t, plane->dim, beside);
        codec->decode(row, side->scale ? side->scale[t] : 1.0f, plane->dim, to + t * pad);
    }
}

/* A tile of float32 rows in scratch, `pad` floats apart. */
static void wide_tile(kvb_state *state, int64_t pad)
{
    kvb_tile *wide = &state->wide_tile;
    wide->count = state->tile.count;
    wide->lead = state->tile.lead;
    wide->first = state->tile.first;
    wide->k = wide->v = (kvb_side){
        .rows = {(const uint8_t *)state->wide, state->wide_rows},
        .schedule = &kvb_plain,
    };
    for (int32_t t = 0; t < round_up(wide->count, LANES); t++)
        state->wide_rows[t] = at_most(t, wide->count - 1) * pad * (int64_t)sizeof *state->wide;
}

/* K is converted once for all parts; then V into the same scratch. A plane that is not is read by
 * each part, of which the first asks. */
static void fold_wide(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups,
                      double *ticks)
{
    const kvb_decode *a = &task->args;
    const kvb_tier *tier = kvb_tier_of(a->isa);
    const bool wide_k = task->wide[KVB_K], wide_v = task->wide[KVB_V];
    const kvb_qk *qk = wide_k ? &tier->qk[DTYPE_F32] : kvb_qk_of(a);
    const kvb_pv *pv = wide_v ? &tier->pv[DTYPE_F32] : kvb_pv_of(a);
    kvb_tile *tile = &state->tile, *wide = &state->wide_tile, *of_k = wide_k ? wide : tile,
             *of_v = wide_v ? wide : tile;
    const kvb_schedule *then = tile->v.schedule;
    uint64_t from = ticks ? kvb_ticks() : 0;
    wide_tile(state, task->k_pad);
    if (wide_k)
        widen(task, &a->cache->k, tile, &tile->k, task->k_pad, state->wide);
    for (int64_t p = 0; p < state->parts; p++) {
        kvb_score(qk, of_k, &groups[p], state->scores + p * HEAD_SCORES);
        kvb_tile_plain(tile);
    }
    if (ticks)
        kvb_lap(&ticks[0], &from);
    for (int64_t p = 0; p < state->parts; p++) {
        tier->max(of_k, &groups[p], state->scores + p * HEAD_SCORES);
        tier->exp(of_v, &groups[p], state->scores + p * HEAD_SCORES);
    }
    if (ticks)
        kvb_lap(&ticks[1], &from);
    tile->v.schedule = then;
    if (task->v_pad != task->k_pad)
        wide_tile(state, task->v_pad);
    if (wide_v)
        widen(task, &a->cache->v, tile, &tile->v, task->v_pad, state->wide);
    for (int64_t p = 0; p < state->parts; p++) {
        kvb_add_up(pv, of_v, &groups[p], state->scores + p * HEAD_SCORES);
        kvb_tile_plain(tile);
    }
    if (ticks)
        kvb_lap(&ticks[2], &from);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void fold_block(const kvb_decode_task *task, kvb_state *state, const kvb_walk *walk,
                       double *ticks)
{
    const bool wide = task->wide[KVB_K] || task->wide[KVB_V];
    for (int64_t h = 0, heads; h < state->pair.block->unit->heads; h += heads) {
        kvb_group *groups = state->groups + h * task->parts;
        kvb_tile_make(walk, &state->pair, h, false, &state->tile, &state->lists);
        heads = state->tile.k.schedule->kv_heads;
        if (wide) {
            fold_wide(task, state, groups, ticks);
            continue;
        }
        for (int64_t p = 0; p < state->parts; p++) {
            fold(task, &state->tile, &groups[p], state->scores, ticks);
            kvb_tile_plain(&state->tile); /* the first part has asked */
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
