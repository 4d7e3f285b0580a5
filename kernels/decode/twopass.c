/* twopass: all scores of a unit are written down, then softmax over them, then one pass over V. */
#include "base/ticks.h"
#include "decode/decode.h"

static float *scores_of(const kvb_decode_task *task, kvb_state *state, int64_t block, int64_t head, int64_t part)
{
    const int64_t side = TILE / task->step, room = block / side;
    return state->scores + ((room * task->heads + head) * task->parts + part) * HEAD_SCORES + block % side * task->step;
}

/* A pass streams one plane, so it prefetches the next block's rows of the same plane. */
static void tile_of(kvb_state *state, const kvb_walk *walk, const kvb_block *block, const kvb_block *next, int64_t head)
{
    kvb_tile *tile = &state->tile;
    kvb_tile_rows(walk->args, block, head, tile);
    if (walk->scaled)
        kvb_tile_scales(walk->args, block, head, tile);
    kvb_tile_requests(walk, block, next, head, true, tile, &state->lists);
}

enum pass { SCORES, SUMS };

/* One walk over the unit: scores and their maximum, or the weighted sum of V. */
static void pass_over(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit, enum pass pass)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    const kvb_rows *rows = &tier->rows[task->args.cache->k.dtype];
    bool scaled = kvb_formats[task->args.cache->k.dtype].scaled;
    kvb_walk walk;
    kvb_block *block = &state->block[0], *next = &state->block[1];
    kvb_walk_start(&walk, &task->args, unit, unit + 1);
    kvb_walk_next(&walk, block);
    for (int64_t i = 0; block->unit; i++) {
        kvb_walk_next(&walk, next);
        for (int64_t h = 0; h < unit->heads; h++) {
            tile_of(state, &walk, block, next, h);
            for (int64_t p = 0; p < task->parts; p++) {
                const kvb_group *group = &state->groups[h * task->parts + p];
                float *scores = scores_of(task, state, i, h, p);
                if (pass == SCORES) {
                    kvb_score(rows, &state->tile, group, scores);
                    tier->max(&state->tile, group, scores, scaled);
                } else {
                    rows->pv[kvb_class(group->heads)](&state->tile, group, scores);
                }
                state->tile.schedule = &kvb_plain; /* the first part has asked */
            }
        }
        kvb_block *done = block;
        block = next;
        next = done;
    }
}

/* Probabilities of the whole unit, now that every maximum is known and no rescaling is left to do. */
static void softmax(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit)
{
    const kvb_tier *tier = kvb_tier_of(task->args.isa);
    bool scaled = kvb_formats[task->args.cache->k.dtype].scaled;
    kvb_walk walk;
    kvb_block *block = &state->block[0];
    for (int64_t i = 0; i < task->heads * task->parts; i++)
        for (int h = 0; h < HEADS; h++)
            state->groups[i].rescale[h] = 1.0f;
    kvb_walk_start(&walk, &task->args, unit, unit + 1);
    kvb_walk_next(&walk, block);
    for (int64_t i = 0; block->unit; i++, kvb_walk_next(&walk, block))
        for (int64_t h = 0; h < unit->heads; h++) {
            state->tile.count = block->count;
            state->tile.lead = block->lead;
            if (scaled)
                kvb_tile_scales(&task->args, block, h, &state->tile);
            for (int64_t p = 0; p < task->parts; p++)
                tier->exp(&state->tile, &state->groups[h * task->parts + p], scores_of(task, state, i, h, p),
                            scaled);
        }
}

void kvb_twopass(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    double none[3], *at = ticks ? ticks : none;
    for (const kvb_unit *unit = walk->unit; unit < walk->end; unit++) {
        if (!unit->count)
            continue;
        kvb_unit_begin(task, state, unit);
        uint64_t begin = kvb_ticks();
        pass_over(task, state, unit, SCORES);
        uint64_t scored = kvb_ticks();
        softmax(task, state, unit);
        uint64_t weighed = kvb_ticks();
        pass_over(task, state, unit, SUMS);
        at[0] += (double)(scored - begin);
        at[1] += (double)(weighed - scored);
        at[2] += (double)(kvb_ticks() - weighed);
        kvb_unit_end(task, state, unit);
    }
}
