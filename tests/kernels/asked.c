/* Lists the rows that a walk prefetches while each of its tiles is read. No row is really read. */
#include "decode/decode.h"

/* A tier whose stages take rows in runs, and those of one head at a time. */
const kvb_tier *kvb_tier_of(int32_t isa)
{
    static const kvb_tier plain;
    return (void)isa, &plain;
}
const kvb_tier *kvb_tier_with(int32_t isa, int32_t way) { return (void)way, kvb_tier_of(isa); }
/* A walk never calls this. */
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads)
{
    return (void)args, (void)threads, KVB_OK;
}

typedef struct asked {
    int64_t seq, head, first, count; /* tokens of a KV head */
    int64_t order[PLANES];
    int64_t rows[PLANES][TILE]; /* addresses of `count` rows */
} asked;

static void write_down(const kvb_tile *tile, const kvb_side *side, int32_t plane, asked *to)
{
    to->order[plane] = side->schedule->order;
    for (int32_t t = 0; t < tile->count && side->schedule->order != ORDER_PLAIN; t++)
        to->rows[plane][t] = (int64_t)(intptr_t)kvb_row_asked(side, t);
}

/* Write the tiles of all units, in the order of one thread. Returns how many, at most `most`. */
__attribute__((visibility("default"))) int64_t asked_for(const kvb_decode *args, int64_t most,
                                                         asked *to)
{
    static kvb_walk walk;
    static kvb_pair pair;
    kvb_plan plan;
    kvb_tile tile;
    kvb_lists lists;
    int64_t count = 0;
    if (kvb_plan_make(args, 1, &plan))
        return -1;
    kvb_walk_start(&walk, args, plan.units, plan.units + plan.scan_units[plan.scans]);
    for (kvb_pair_start(&pair, &walk); pair.block->unit; kvb_pair_next(&pair, &walk))
        for (int64_t h = 0; h < pair.block->unit->heads && count < most; h++, count++) {
            const kvb_unit *unit = pair.block->unit;
            kvb_tile_rows(&walk, pair.block, h, &tile);
            kvb_tile_requests(&walk, pair.block, pair.next, h, false, &tile, &lists);
            to[count] = (asked){
                .seq = unit->seq, .head = unit->head + h, .first = tile.first, .count = tile.count};
            write_down(&tile, &tile.k, KVB_K, &to[count]);
            write_down(&tile, &tile.v, KVB_V, &to[count]);
        }
    kvb_plan_free(&plan);
    return count;
}
