/* How the rows of a plane are read: a value made when a walk begins, which every stage and the twin
 * obey. */
#ifndef KVB_SCHEDULE_H
#define KVB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* The order in which the rows of a tile are read, and what is prefetched meanwhile. Stages are
 * compiled for each order. */
enum {
    /* rows of a list, in the stage's own order; no prefetch */
    ORDER_PLAIN,
    /* the same; with every line that is read, one line of the rows in `asked` is prefetched, into
     * L1 or only into L2 */
    ORDER_LISTED,
    ORDER_LISTED_L2,
    /* row after row, each whole, at computed addresses: hardware learns the stride of a load, but
     * not if the addresses come from a list. Lines `distance` bytes ahead are prefetched */
    ORDER_ROWS,
    /* a run of rows in the stage's own order. With every line, the stage touches (loads) a line of
     * the next run, in address order, and prefetches the line `distance` bytes after that.
     * Hardware prefetchers follow these loads, the only ones that miss L1: the lines of the run
     * itself were touched before */
    ORDER_RUNS,
};

typedef struct kvb_schedule {
    int32_t order;
    /* ORDER_ROWS, ORDER_RUNS: bytes from the line that is read or touched to the prefetched one */
    int64_t distance;
    /* KV heads whose rows are read in turn: 1, or all heads of a token. Their groups follow each
     * other in memory, their scores are HEAD_SCORES apart. The same for both planes */
    int64_t kv_heads;
    int64_t run_rows; /* ORDER_ROWS, ORDER_RUNS: rows of a run. Slices of V end with it */
} kvb_schedule;

/* For tiles that are already prefetched or in a cache. */
static const kvb_schedule kvb_plain = {.order = ORDER_PLAIN, .kv_heads = 1};

#endif
