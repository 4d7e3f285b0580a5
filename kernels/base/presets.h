/* The schedules that have a name: this table is the one home of what each does, of where it pays
 * and of its numbers.
 *
 * A schedule says in which order rows are read, and which are prefetched meanwhile. No other file
 * asks for a preset's name. walk/schedule.c makes a kvb_schedule of its row for a cache,
 * walk/requests.c the lists of what is asked for. A preset stays while it is somewhere at least 3 %
 * faster than all others. */
#ifndef KVB_PRESETS_H
#define KVB_PRESETS_H

#include <stdbool.h>
#include <stdint.h>

#define KVB_PRESETS(PRESET) \
    PRESET(off, OFF) PRESET(cross, CROSS) PRESET(weave, WEAVE) PRESET(stream, STREAM)

#define KVB_SCHEDULE(word, name) SCHEDULE_##name,
enum { KVB_PRESETS(KVB_SCHEDULE) SCHEDULES };
#undef KVB_SCHEDULE

/* What the library takes where nobody says (kvb_schedule_default), on every CPU: no vendor is asked
 * for. From memory it was the fastest in 15 of 18 cells of a Zen 3 (layouts x f32 f16 i8 x G = 1,
 * 2, 4) and within 8 % of the fastest in the others; on a Zen 4 it was in 113 of 176 (layouts x all
 * dtypes x G = 1, 2, 4, 8), and 6 % from the fastest on average
 * (`stream` 9, `cross` 30, `off` 82). Where it loses: to `stream` at G = 1 and 2, and where heads
 * lie inside a token, by up to 56 %; in caches to `off` and `stream`, by 9 % on average. */
enum { SCHEDULE_DEFAULT = SCHEDULE_WEAVE };

/* Of lines that are read in the order of addresses, every fourth asks for another: hardware asks
 * for those between. On a Zen 4 a thread by itself reads 10 to 22 % faster than where every line
 * asks. Two rows side by side, fewer lines of a row at a time, and work that keeps a core behind
 * memory (rows to convert, perhead, scores of four heads) want every line asked for: 20 to 50 %
 * more time without. A constant, for loops are written out by it. */
enum { LINES_PER_REQUEST = 4 };

/* Tokens of a tile, at most, whose rows are not read whole. */
enum { TILE_LISTED = 256 };

enum { PAGE = 4096 }; /* what prefetchers in hardware do not cross */

/* What is asked for while rows are consumed. */
enum {
    ASKS_NOTHING,
    ASKS_ACROSS, /* K: for V of the same tile; V: for K of the next one */
    ASKS_WOVEN,  /* for K and V of the next block in turn */
    ASKS_OWN     /* for what comes next in the same plane */
};

/* What a stage multiplies rows as, one bit each: that says how long it is busy with a line, and so
 * whether L1 keeps what was asked for until it is read. */
enum {
    PRODUCTS_NONE = 1,   /* a probe reads */
    PRODUCTS_FLOATS = 2, /* float32, whatever rows are made of */
    PRODUCTS_BF16 = 4,   /* dot: floats of 16 bits and fewer */
    PRODUCTS_BYTES = 8,  /* dot: whole numbers, a row with a scale beside it */
    PRODUCTS_PACKS = 16, /* dot: whole numbers, a scale in each pack */
    PRODUCTS_ALL = 31
};

typedef struct kvb_preset {
    /* Bytes of K of a block, and as many of V: they are asked for while the block before is
     * consumed. Blocks of pages that lie anywhere, and blocks whose rows are read whole, each have
     * their own. */
    int32_t block, block_paged, block_whole;
    /* Where heads lie inside a token, bytes for products of bytes of up to four heads, which keeps
     * a core least busy */
    int32_t block_light;
    /* two LANES of tokens at least, where heads lie inside a token and LANES of them fill no block
     */
    bool doubled;
    int32_t asks;  /* ASKS_*; where K and V do not lie alike, each for its own at most */
    int32_t to_l2; /* of these PRODUCTS_* into L2 and no further, of others into L1 */
    /* runs of rows of at least a page that are asked for in turn, of both planes together */
    int32_t streams;
    /* Rows that lie one behind another are read, or touched, in the order of addresses. So much
     * further on is asked for, or so much where more than two heads read rows whole; */
    bool in_order;
    int32_t distance, distance_heads;
    /* the rows of all KV heads in turn, where a token's rows and the sums of all heads, or their q,
     * take so much of L1; */
    int32_t room;
    /* not whole but by runs: so many bytes, and rows; twice as many for groups of more than four
     * heads, which write down more sums behind each run. Rows of a run of V where whole ones are
     * read by slices: of f32, of others. */
    int32_t run, run_rows, slice_rows_f32, slice_rows;
} kvb_preset;

static const kvb_preset kvb_presets[SCHEDULES] = {
    /* off: nothing is asked for. The fastest in caches: on a Zen 4 (8 MiB, hot) by 3 to 23 % in 34
     * cells, heads inside a token and pages of one and two query heads; on a Zen 3, with `stream`,
     * 10 to 30 % ahead of `weave`. */
    [SCHEDULE_OFF] = {.block = 65536, .block_paged = 16384, .streams = 1},

    /* cross: while K is consumed V of the same tile, while V is the next tile's K; heads inside a
     * token share the next block. Rows in the order of addresses, into L1. The fastest from memory
     * on a Zen 3 at position f16 G = 4 (.49 of a plain read; weave and stream .47), on a Zen 4 at
     * head q4_0 G = 4 (3.6 to 4.4 %). */
    [SCHEDULE_CROSS] = {.block = 65536, .block_paged = 16384, .asks = ASKS_ACROSS, .streams = 1},

    /* weave: a line of K, a line of V, and so from up to eight pages of the next block in turn,
     * into L1. Prefetchers in hardware follow a page at a time: a core that reads several side by
     * side keeps more of memory busy. Runs of four pages are read faster than runs of two; eight
     * side by side come to 128 KiB; pages of 16 tokens have no such runs, and a quarter stays in
     * L1. From memory on a Zen 3: f16 G = 1 .92 of a plain read (stream .73, cross .76), f32 G = 4
     * .87; on a Zen 4 the fastest in 113 of 176 cells, by up to 37 % (pages, G = 4 and 8, packed
     * rows). to_l2: none. Into L2 one thread took, of the time, on a Zen 4 (32 KiB of L1) .83 to
     * 1.00, with q8_0 1.2; on a Zen 5 (48 KiB; G = 1, 4) with float32 1.00 to 1.18, with bf16 1.02
     * to 1.40, with bytes 1.08, with packs 1.00 to 1.13. */
    [SCHEDULE_WEAVE] = {.block = 65536, .block_paged = 16384, .asks = ASKS_WOVEN, .streams = 8},

    /* stream: of the same plane what comes next in the order of addresses, into L2, so that the
     * hardware's own prefetchers lead: on a Zen 4 they led at 27 GB/s of a thread where lists of
     * addresses got 12 to 20. Against lists, rows that are read whole took .65 to .96 of the time
     * there, KV heads in turn .70 to .90, runs .87 to .96. From memory there the fastest in 54 of
     * 176 cells, by up to 56 % (G = 1 and 2; heads inside a token). Blocks are cut so that all but
     * the last rows of a head are read so: lists for the rest of a block took a context of 1000
     * tokens up to 60 % more time. Whole rows in blocks four times as long: 3 to 17 % less.
     * distance: 6 KiB, four heads 12. doubled: 0 to 13 % less; light blocks: 0 to 15 % less. */
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
