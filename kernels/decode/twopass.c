/* twopass: store all scores of a unit, then do the softmax over them, then one pass over V. */
#include "decode/decode.h"

static float *scores_of(const kvb_decode_task *task, kvb_state *state, int64_t block, int64_t head,
                        int64_t part)
{
    const int64_t side = TILE / task->step, room = block / side;
    return state->scores + ((room * task->heads + head) * task->parts + part) * HEAD_SCORES +
           block % side * task->step;
}

enum pass { SCORES, SUMS };

/* Walk over the unit once: for scores and their maximum, or for the weighted sum of V. A walk reads
 * and prefetches one plane. */
static void pass_over(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit,
                      enum pass pass)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    const kvb_qk *qk = kvb_qk_of(&task->args);
    const kvb_pv *pv = kvb_pv_of(&task->args);
    kvb_walk walk;
    kvb_pair *pair = &state->pair;
    kvb_walk_start(&walk, &task->args, unit, unit + 1);
    kvb_pair_start(pair, &walk);
    for (int64_t i = 0; pair->block->unit; i++, kvb_pair_next(pair, &walk))
        for (int64_t h = 0; h < unit->heads; h++) {
            kvb_tile_make(&walk, pair, h, true, &state->tile, &state->lists);
            for (int64_t p = 0; p < state->parts; p++) {
                const kvb_group *group = &state->groups[h * task->parts + p];
                float *scores = scores_of(task, state, i, h, p);
                if (pass == SCORES) {
                    kvb_score(qk, &state->tile, group, scores);
                    tier->max(&state->tile, group, scores);
                } else {
                    pv->rows[kvb_class(group->q_rows)](&state->tile, group, scores);
                }
                kvb_tile_plain(&state->tile); /* the first part has prefetched */
            }
        }
}

/* Compute the weights of the whole unit. Every maximum is final, so nothing is rescaled. */
static void softmax(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    kvb_walk walk;
    kvb_block *block = &state->pair.blocks[0];
    for (int64_t i = 0; i < task->heads * task->parts; i++)
        for (int h = 0; h < Q_ROWS; h++)
            state->groups[i].rescale[h] = 1.0f;
    kvb_walk_start(&walk, &task->args, unit, unit + 1);
    kvb_walk_next(&walk, block);
    for (int64_t i = 0; block->unit; i++, kvb_walk_next(&walk, block))
        for (int64_t h = 0; h < unit->heads; h++) {
            state->tile.count = block->count;
            state->tile.lead = block->lead;
            kvb_tile_scales(&walk, block, h, &state->tile);
            for (int64_t p = 0; p < state->parts; p++)
                tier->exp(&state->tile, &state->groups[h * task->parts + p],
                          scores_of(task, state, i, h, p));
        }
}

void kvb_twopass(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    double none[3] = {0}, *at = ticks ? ticks : none;
    for (const kvb_unit *unit = walk->unit; unit < walk->end; unit++) {
        if (!unit->count)
            continue;
        kvb_unit_begin(task, state, unit);
        uint64_t from = kvb_ticks();
        pass_over(task, state, unit, SCORES);
        kvb_lap(&at[0], &from);
        softmax(task, state, unit);
        kvb_lap(&at[1], &from);
        pass_over(task, state, unit, SUMS);
        kvb_lap(&at[2], &from);
        kvb_unit_end(task, state, unit);
    }
}
