/* The table of presets (named schedules): what each does, where it is fast, and its numbers.
 *
 * A schedule is the order in which rows are read, and what is prefetched meanwhile. No other file
 * asks for a preset's name. From a row of this table walk/schedule.c makes a kvb_schedule for a
 * cache, and walk/requests.c makes the lists of rows to prefetch. A preset is kept if it is at
 * least 3 % faster than all others somewhere. */
#ifndef KVB_PRESETS_H
#define KVB_PRESETS_H

#include <stdbool.h>
#include <stdint.h>

#define KVB_PRESETS(PRESET) \
    PRESET(off, OFF) PRESET(cross, CROSS) PRESET(weave, WEAVE) PRESET(stream, STREAM)

#define KVB_SCHEDULE(word, name) SCHEDULE_##name,
enum { KVB_PRESETS(KVB_SCHEDULE) SCHEDULES };
#undef KVB_SCHEDULE

/* The default of the library (kvb_schedule_default) on every CPU, whatever its vendor. G is the
 * number of query heads of a KV head. From memory on a Zen 3 it was the fastest in 15 of 18 cells
 * (layouts x f32 f16 i8 x G = 1, 2, 4), and within 8 % of the fastest in the others. On a Zen 4 it
 * was the fastest in 113 of 176 cells (layouts x all dtypes x G = 1, 2, 4, 8), and on average 6 %
 * slower than the fastest (`stream` 9 %, `cross` 30 %, `off` 82 %). `stream` beats it by up to 56 %
 * at G = 1 and 2, and if heads are inside a token. In caches `off` and `stream` beat it by 9 % on
 * average. */
enum { SCHEDULE_DEFAULT = SCHEDULE_WEAVE };

/* If lines are read in address order, only every fourth one prefetches another: the hardware
 * prefetches the lines between. On a Zen 4 this makes a single thread read 10 to 22 % faster than a
 * prefetch with every line. But every line must be prefetched if two rows are read side by side, if
 * fewer lines of a row are read at a time, or if work keeps the core slower than memory (rows to
 * convert, perhead, scores of four heads): else it takes 20 to 50 % more time. It is a constant
 * because loops are unrolled by it. */
enum { LINES_PER_REQUEST = 4 };

/* Most tokens of a tile if its rows are not read whole. */
enum { TILE_LISTED = 256 };

enum { PAGE = 4096 }; /* hardware prefetchers stop at its end */

/* What a stage prefetches while it reads rows. */
enum {
    ASKS_NOTHING,
    ASKS_ACROSS, /* while K is read: V of the same tile; while V is read: K of the next tile */
    ASKS_WOVEN,  /* K and V of the next block in turn */
    ASKS_OWN     /* the next rows of the same plane */
};

/* The numbers that a stage multiplies, one bit each. They decide how long a stage works on a line,
 * and so whether L1 still holds a prefetched line when it is read. */
enum {
    PRODUCTS_NONE = 1,   /* none: a probe that reads */
    PRODUCTS_FLOATS = 2, /* float32, whatever the dtype */
    PRODUCTS_BF16 = 4,   /* dot: bf16 and 8-bit floats */
    PRODUCTS_BYTES = 8,  /* dot: whole numbers, one scale per row */
    PRODUCTS_PACKS = 16, /* dot: whole numbers, one scale per pack */
    PRODUCTS_ALL = 31
};

typedef struct kvb_preset {
    /* bytes of K in a block, and as many of V. They are prefetched while the block before is read.
     * block_paged: blocks of pages in any place; block_whole: blocks whose rows are read whole */
    int32_t block, block_paged, block_whole;
    /* bytes of a block if heads are inside a token, the variant is dot, its QK half can read rows
     * whole, and there are at most four query rows: then a core is least busy. 0 = as `block` */
    int32_t block_light;
    /* blocks of at least 2 * LANES tokens, if heads are inside a token and LANES tokens do not fill
     * a block */
    bool doubled;
    int32_t asks;  /* ASKS_*; planes that differ prefetch their own rows at most */
    int32_t to_l2; /* sum of the PRODUCTS_* that prefetch into L2; others prefetch into L1 */
    /* runs of rows, each at least a page, that are prefetched in turn; K and V together */
    int32_t streams;
    /* rows without gaps are read, or touched, in address order. Prefetches go `distance` bytes
     * ahead, or `distance_heads` if more than two query rows read rows whole */
    bool in_order;
    int32_t distance, distance_heads;
    /* rows of all KV heads are read in turn if a token's rows, with the sums or q of all heads, fit
     * in this many bytes of L1 */
    int32_t room;
    /* rows that are not read whole are read in runs of at most `run` bytes and `run_rows` rows;
     * twice that if a group has more than four query rows, which store more sums after each run.
     * slice_rows_f32, slice_rows (other dtypes): rows of a run of V if rows are read whole */
    int32_t run, run_rows, slice_rows_f32, slice_rows;
} kvb_preset;

static const kvb_preset kvb_presets[SCHEDULES] = {
    /* off: no prefetch. The fastest in caches: on a Zen 4 (8 MiB, hot) by 3 to 23 % in 34 cells
     * (heads inside a token; pages with G = 1 and 2). On a Zen 3 `off` and `stream` are 10 to 30 %
     * faster than `weave`. */
    [SCHEDULE_OFF] = {.block = 65536, .block_paged = 16384, .streams = 1},

    /* cross: while K is read, V of the same tile; while V is read, K of the next tile. Heads inside
     * a token share the rows of the next block among them. Into L1. The fastest from memory: on a
     * Zen 3 at position f16 G = 4 (.49 of a plain read; weave and stream .47), on a Zen 4 at head
     * q4_0 G = 4 (by 3.6 to 4.4 %). */
    [SCHEDULE_CROSS] = {.block = 65536, .block_paged = 16384, .asks = ASKS_ACROSS, .streams = 1},

    /* weave: a line of K, then a line of V, from up to eight pages of the next block in turn, into
     * L1. A hardware prefetcher follows one page at a time, so a core that reads several pages side
     * by side keeps more of memory busy.
     * block: runs of four pages are faster than runs of two, and eight of them are 128 KiB.
     * block_paged: pages of 16 tokens have no such runs; a quarter of the block stays in L1.
     * From memory on a Zen 3: f16 G = 1 .92 of a plain read (stream .73, cross .76), f32 G = 4 .87.
     * On a Zen 4 the fastest in 113 of 176 cells, by up to 37 % (pages, G = 4 and 8, packed rows).
     * to_l2: none. The time of one thread into L2, of its time into L1: on a Zen 4 (32 KiB of L1)
     * .83 to 1.00, with q8_0 1.2; on a Zen 5 (48 KiB; G = 1, 4) with float32 1.00 to 1.18, with
     * bf16 1.02 to 1.40, with bytes 1.08, with packs 1.00 to 1.13. */
    [SCHEDULE_WEAVE] = {.block = 65536, .block_paged = 16384, .asks = ASKS_WOVEN, .streams = 8},

    /* stream: the next rows of the same plane in address order, into L2. So the hardware
     * prefetchers lead: on a Zen 4 one thread then read 27 GB/s, and 12 to 20 GB/s from lists of
     * addresses. The time there, of that with lists: rows read whole .65 to .96, KV heads in turn
     * .70 to .90, runs .87 to .96. From memory there the fastest in 54 of 176 cells, by up to 56 %
     * (G = 1 and 2; heads inside a token).
     * Blocks are cut so that all but the last rows of a head are read in this way: lists for the
     * rest of each block took up to 60 % more time at a context of 1000 tokens.
     * block_whole: 3 to 17 % less time than `block`. distance: 6 KiB, with four heads 12 KiB.
     * doubled: 0 to 13 % less time. block_light: 0 to 15 % less. */
    [SCHEDULE_STREAM] =
        {
            .block = 65536,
            .block_paged = 16384,
            .block_whole = 262144,
            .block_light = 32768,
            .doubled = true,
            .asks = ASKS_OWN,
            .to_l2 = PRODUCTS_ALL,
            .streams = 1,
            .in_order = true,
            .distance = 6144,
            .distance_heads = 12288,
            .room = 24576,
            .run = 8192,
            .run_rows = 32,
            .slice_rows_f32 = 4,
            .slice_rows = 8,
        },
};

#endif
