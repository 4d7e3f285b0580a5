/* How a plane's rows of a tile are read: one value for each plane, made where a walk begins, that
 * every stage and the twin obey. */
#ifndef KVB_SCHEDULE_H
#define KVB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* In which order the rows of a tile are taken, and what is prefetched meanwhile. Stages are
 * compiled for each. */
enum {
    /* rows of a list, in the order that suits a stage; nothing is asked for */
    ORDER_PLAIN,
    /* the same, and with every line of a row a line of those that come next, as they are listed:
     * into L1, or no further than L2 */
    ORDER_LISTED,
    ORDER_LISTED_L2,
    /* row after row, each whole, at computed addresses: hardware that learns the stride of an
     * instruction's addresses does not where they come out of a list. Lines ask for what lies
     * `distance` further */
    ORDER_ROWS,
    /* a run of rows in the order that suits a stage; with every line it touches, that is loads, one
     * of the next run, in the order of addresses, and asks for the one `distance` behind that.
     * Hardware runs ahead of those loads and sees no others: the run's own lines were touched
     * before, and are in L1 */
    ORDER_RUNS,
};

typedef struct kvb_schedule {
    int32_t order;
    /* ORDER_ROWS, ORDER_RUNS: bytes from what is read or touched to what is asked for */
    int64_t distance;
    /* 1, or those of a token, whose rows are read in turn: groups follow the first one's, scores
     * every HEAD_SCORES. The same for both planes */
    int64_t kv_heads;
    int64_t run_rows; /* ORDER_ROWS, ORDER_RUNS: rows of a run. Slices of V end with it */
} kvb_schedule;

/* Of tiles that were asked for by somebody else, or are in a cache. */
static const kvb_schedule kvb_plain = {.order = ORDER_PLAIN, .kv_heads = 1};

#endif
