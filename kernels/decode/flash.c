/* flash: one pass. For each tile: scores of the whole group, softmax in place, weighted sum of V.
 */
#include "decode/decode.h"

static void softmax(const kvb_tier *tier, const kvb_tile *tile, const kvb_group *group,
                    float *scores)
{
    for (int64_t h = 0; h < tile->k.schedule->kv_heads; h++) {
        tier->max(tile, group + h, scores + h * HEAD_SCORES);
        tier->exp(tile, group + h, scores + h * HEAD_SCORES);
    }
}

/* Run the stages of one tile for one group. Adds the clock ticks of each stage if `ticks` is given.
 */
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

/* ---- rows as float32: for more query rows than a call takes, or if no half reads blocks ------ */

/* Convert rows first .. end to float32 in scratch, `pad` floats apart, and make a tile of them. As
 * many rows of the schedule are prefetched meanwhile. */
static void widen(const kvb_decode_task *task, kvb_state *state, const kvb_plane *plane,
                  const kvb_side *side, int32_t first, int32_t end)
{
    const kvb_decode *a = &task->args;
    const kvb_codec *codec = &kvb_tier_of(a->isa)->codecs[kvb_way_of(a->variant, plane->dtype)];
    const int64_t pad = round_up(plane->dim, LANES);
    const int32_t order = side->schedule->order, lead = state->tile.lead;
    kvb_tile *wide = &state->wide_tile;
    _Alignas(LINE) uint8_t beside[DIM_MAX * 4];
    wide->first = state->tile.first + first;
    wide->count = end - first;
    wide->lead = (int32_t)at_least(0, lead - first);
    wide->k = wide->v = (kvb_side){
        .rows = {(const uint8_t *)state->wide, state->wide_rows},
        .schedule = &kvb_plain,
    };
    for (int32_t t = 0; t < round_up(wide->count, LANES); t++)
        state->wide_rows[t] = at_most(t, wide->count - 1) * kvb_floats(pad);
    for (int32_t t = first + wide->lead; t < end; t++) {
        for (int64_t b = 0; order != ORDER_PLAIN && b < side->bytes; b += LINE)
            kvb_fetch(kvb_row_asked(side, t) + b, order != ORDER_LISTED);
        const uint8_t *row = kvb_side_row(plane->dtype, side, t, plane->dim, beside);
        codec->decode(row, side->scale ? side->scale[t] : 1.0f, plane->dim,
                      state->wide + (t - first) * pad);
    }
}

/* Compute the scores of all parts, for WIDE tokens at a time. The float32 rows include K's scales.
 */
static void score_wide(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_decode *a = &task->args;
    kvb_tile *tile = &state->tile;
    for (int32_t t = 0; t < tile->count; t += WIDE) {
        widen(task, state, &a->cache->k, &tile->k, t, (int32_t)at_most(t + WIDE, tile->count));
        for (int64_t p = 0; p < state->parts; p++)
            kvb_score(&kvb_tier_of(a->isa)->qk[DTYPE_F32], &state->wide_tile, &groups[p],
                      state->scores + p * HEAD_SCORES + t);
    }
    tile->k.scale = NULL;
}

/* Compute the weighted sums of all parts. They are rescaled once. */
static void add_up_wide(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_decode *a = &task->args;
    const kvb_tile *tile = &state->tile;
    for (int32_t t = 0; t < tile->count; t += WIDE) {
        widen(task, state, &a->cache->v, &tile->v, t, (int32_t)at_most(t + WIDE, tile->count));
        for (int64_t p = 0; p < state->parts; p++) {
            kvb_add_up(&kvb_tier_of(a->isa)->pv[DTYPE_F32], &state->wide_tile, &groups[p],
                       state->scores + p * HEAD_SCORES + t);
            for (int h = 0; h < Q_ROWS; h++)
                groups[p].rescale[h] = 1.0f;
        }
    }
}

/* ---- rows turned: for more query rows than a call takes -------------------------------------- */

/* Return the list of lines that part p prefetches while a piece is multiplied. They are the part's
 * share of what the schedule prefetches with the piece's lines, from byte `at` of each row on. If
 * there is nothing to prefetch, the list is a line of the scratch. */
static kvb_lines ask(kvb_state *state, const kvb_side *side, int64_t p, kvb_turned piece,
                     int64_t bytes)
{
    const int64_t rows = piece.end - piece.first, order = side->schedule->order;
    const uint8_t **to = state->asked;
    *to = state->turned;
    for (int64_t t = p * rows / state->parts; order && t < (p + 1) * rows / state->parts; t++)
        for (int64_t b = piece.at; b < piece.at + bytes; b += LINE)
            *to++ = kvb_row_asked(side, piece.first + t) + b;
    return (kvb_lines){state->asked, state->asked + at_least(0, to - state->asked - 1)};
}

/* Prefetch the lines that a stage with few steps has left. */
static void ask_rest(const kvb_lines *asked)
{
    for (const uint8_t *const *line = asked->next; line < asked->last; line++)
        kvb_fetch(line[1], true);
}

/* Compute the scores of all parts, for TURNED tokens at a time. The scores include K's scales. */
static void score_turned(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_plane *k = &task->args.cache->k;
    const kvb_qk *qk = kvb_qk_of(&task->args);
    const kvb_tile *tile = &state->tile;
    for (int32_t t = 0; t < tile->count; t += TURNED) {
        const kvb_turned piece = {.first = t, .end = (int32_t)at_most(t + TURNED, tile->count)};
        qk->turn(tile, piece, k->dim, state->turned);
        for (int64_t p = 0; p < state->parts; p++) {
            kvb_lines asked = ask(state, &tile->k, p, piece, k->row_bytes);
            qk->turned[kvb_class(groups[p].q_rows)](tile, &groups[p], piece, state->turned, &asked,
                                                    state->scores + p * HEAD_SCORES);
            ask_rest(&asked);
        }
    }
    state->tile.k.scale = NULL;
}

/* Compute the weighted sums of all parts, one line of each row at a time. */
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
                const kvb_turned live = {t, (int32_t)at_most(piece.end, tile->count), at};
                kvb_lines asked = ask(state, &tile->v, p, live, LINE);
                pv->turned[kvb_class(groups[p].q_rows)](&groups[p], piece, state->turned, &asked,
                                                        state->scores + p * HEAD_SCORES);
                ask_rest(&asked);
            }
        }
}

/* ---- rows made once for all parts ------------------------------------------------------------ */

/* Compute the scores part by part: each part reads the rows of K, and the first one prefetches. */
static void score_each(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    for (int64_t p = 0; p < state->parts; p++) {
        kvb_score(kvb_qk_of(&task->args), &state->tile, &groups[p],
                  state->scores + p * HEAD_SCORES);
        kvb_tile_plain(&state->tile);
    }
}
static void add_up_each(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    for (int64_t p = 0; p < state->parts; p++) {
        kvb_add_up(kvb_pv_of(&task->args), &state->tile, &groups[p],
                   state->scores + p * HEAD_SCORES);
        kvb_tile_plain(&state->tile);
    }
}

/* Softmax of all parts. Scales of V are left out if rows get them when converted to float32. */
static void softmax_parts(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    kvb_tile *tile = &state->tile;
    const float *scale = tile->v.scale;
    if (task->made[KVB_V] == MADE_FLOATS)
        tile->v.scale = NULL;
    for (int64_t p = 0; p < state->parts; p++) {
        tier->max(tile, &groups[p], state->scores + p * HEAD_SCORES);
        tier->exp(tile, &groups[p], state->scores + p * HEAD_SCORES);
    }
    tile->v.scale = scale;
}

/* Do a tile for all parts: K is converted or turned once for all, then V in the same scratch. */
static void fold_made(const kvb_decode_task *task, kvb_state *state, const kvb_group *groups,
                      double *ticks)
{
    static void (*const scores[])(const kvb_decode_task *, kvb_state *,
                                  const kvb_group *) = {score_each, score_wide, score_turned};
    static void (*const sums[])(const kvb_decode_task *, kvb_state *,
                                const kvb_group *) = {add_up_each, add_up_wide, add_up_turned};
    const kvb_schedule *then = state->tile.v.schedule;
    uint64_t from = ticks ? kvb_ticks() : 0;
    scores[task->made[KVB_K]](task, state, groups);
    if (ticks)
        kvb_lap(&ticks[0], &from);
    softmax_parts(task, state, groups);
    if (ticks)
        kvb_lap(&ticks[1], &from);
    state->tile.v.schedule = then;
    sums[task->made[KVB_V]](task, state, groups);
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
            kvb_tile_plain(&state->tile); /* the first part has prefetched */
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
