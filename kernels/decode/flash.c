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

/* ---- rows turned: for more query rows than a call folds ---------------------------------------- */

/* Part p of the parts of what the schedule asks for while lines of rows first .. end are taken. */
static void ask(const kvb_state *state, const kvb_side *side, int64_t p, kvb_turned piece,
                int64_t bytes)
{
    const int32_t order = side->schedule->order;
    const int64_t rows = piece.end - piece.first;
    for (int64_t t = p * rows / state->parts; order && t < (p + 1) * rows / state->parts; t++)
        for (int64_t b = piece.at; b < piece.at + bytes; b += LINE)
            kvb_fetch(kvb_row_asked(side, piece.first + t) + b, order != ORDER_LISTED);
}

/* Scores of all parts, of a few tokens at a time. */
static void score_turned(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_plane *k = &task->args.cache->k;
    const kvb_qk *qk = kvb_qk_of(&task->args);
    const kvb_tile *tile = &state->tile;
    for (int32_t t = 0; t < tile->count; t += TURNED) {
        const kvb_turned piece = {.first = t, .end = (int32_t)at_most(t + TURNED, tile->count)};
        qk->turn(tile, t, k->dim, state->turned);
        for (int64_t p = 0; p < state->parts; p++) {
            ask(state, &tile->k, p, piece, k->row_bytes);
            qk->turned[kvb_class(groups[p].q_rows)](&groups[p], state->turned, piece.end - t,
                                                    state->scores + p * HEAD_SCORES + t);
        }
    }
}

/* Weighted sums of all parts, of a line of each row at a time. */
static void add_up_turned(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_plane *v = &task->args.cache->v;
    const kvb_pv *pv = kvb_pv_of(&task->args);
    const kvb_tile *tile = &state->tile;
    const int32_t end = (int32_t)round_up(tile->count, LANES);
    for (int64_t p = 0; p < state->parts; p++)
        pv->weigh(tile, &groups[p], state->scores + p * HEAD_SCORES);
    for (int32_t t = 0; t < end; t += TURNED_RUN)
        for (int64_t at = 0; at < kvb_payload(v->dtype, v->dim); at += LINE) {
            const kvb_turned piece = {t, (int32_t)at_most(t + TURNED_RUN, end), at};
            pv->turn(tile, piece, state->turned);
            for (int64_t p = 0; p < state->parts; p++) {
                ask(state, &tile->v, p,
                    (kvb_turned){t, (int32_t)at_most(piece.end, tile->count), at}, LINE);
                pv->turned[kvb_class(groups[p].q_rows)](&groups[p], piece, state->turned,
                                                        state->scores + p * HEAD_SCORES);
            }
        }
}

/* ---- what is made once for all parts ---------------------------------------------------------- */

/* Scores of all parts, of a plane that is made floats, or read by each part, of which the first
 * asks. */
static void score_parts(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_decode *a = &task->args;
    const bool wide = task->made[KVB_K] == MADE_FLOATS;
    kvb_tile *tile = &state->tile;
    if (wide) {
        wide_tile(state, task->k_pad);
        widen(task, &a->cache->k, tile, &tile->k, task->k_pad, state->wide);
    }
    for (int64_t p = 0; p < state->parts; p++) {
        kvb_score(wide ? &kvb_tier_of(a->isa)->qk[DTYPE_F32] : kvb_qk_of(a),
                  wide ? &state->wide_tile : tile, &groups[p], state->scores + p * HEAD_SCORES);
        kvb_tile_plain(tile);
    }
}

static void add_up_parts(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_decode *a = &task->args;
    const bool wide = task->made[KVB_V] == MADE_FLOATS;
    kvb_tile *tile = &state->tile;
    if (wide) {
        wide_tile(state, task->v_pad);
        widen(task, &a->cache->v, tile, &tile->v, task->v_pad, state->wide);
    }
    for (int64_t p = 0; p < state->parts; p++) {
        kvb_add_up(wide ? &kvb_tier_of(a->isa)->pv[DTYPE_F32] : kvb_pv_of(a),
                   wide ? &state->wide_tile : tile, &groups[p], state->scores + p * HEAD_SCORES);
        kvb_tile_plain(tile);
    }
}

/* Softmax applies the scales of rows that no codec has. */
static void softmax_parts(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    const kvb_tile *tile = &state->tile, *wide = &state->wide_tile;
    for (int64_t p = 0; p < state->parts; p++) {
        float *scores = state->scores + p * HEAD_SCORES;
        tier->max(task->made[KVB_K] == MADE_FLOATS ? wide : tile, &groups[p], scores);
        tier->exp(task->made[KVB_V] == MADE_FLOATS ? wide : tile, &groups[p], scores);
    }
}

/* K is made once for all parts; then V in the same scratch. */
static void fold_made(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups,
                      double *ticks)
{
    const kvb_schedule *then = state->tile.v.schedule;
    uint64_t from = ticks ? kvb_ticks() : 0;
    (task->made[KVB_K] == MADE_TURNED ? score_turned : score_parts)(task, state, groups);
    if (ticks)
        kvb_lap(&ticks[0], &from);
    if (task->made[KVB_V] == MADE_FLOATS)
        wide_tile(state, task->v_pad);
    softmax_parts(task, state, groups);
    if (ticks)
        kvb_lap(&ticks[1], &from);
    state->tile.v.schedule = then;
    (task->made[KVB_V] == MADE_TURNED ? add_up_turned : add_up_parts)(task, state, groups);
    if (ticks)
        kvb_lap(&ticks[2], &from);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void fold_block(const kvb_decode_task *task, kvb_state *state, const kvb_walk *walk,
                       double *ticks)
{
    const bool made = task->made[KVB_K] || task->made[KVB_V];
    for (int64_t h = 0, heads; h < state->pair.block->unit->heads; h += heads) {
        kvb_group *groups = state->groups + h * task->parts;
        kvb_tile_make(walk, &state->pair, h, false, &state->tile, &state->lists);
        heads = state->tile.k.schedule->kv_heads;
        if (made) {
            fold_made(task, state, groups, ticks);
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
