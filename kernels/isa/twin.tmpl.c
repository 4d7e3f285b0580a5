/* The pure read of a tile: every line of its rows, and its scales, in the order of its schedule,
 * for all dtypes. The 16-bit words of all loads are added up, so that the compiler keeps each load
 * and a test sees it. */

/* The number of vectors of sums. Several hide the latency of an addition. They stay in registers
 * for a tile. */
enum { SUMS = SUM_LANES / (2 * VL) };
typedef uint16_t octet __attribute__((vector_size(2 * SUM_REST)));
typedef uint64_t pair __attribute__((vector_size(16)));
typedef struct reading {
    vi sums[SUMS];
    octet rest;
} reading;

INLINE void reading_load(reading *to, const kvb_sum *from)
{
    UNROLL_FOR (int i = 0; i < SUMS; i++)
        to->sums[i] = v_load_words(from->lanes + i * 2 * VL);
    memcpy(&to->rest, from->rest, sizeof to->rest);
}

INLINE void reading_store(const reading *from, kvb_sum *to)
{
    UNROLL_FOR (int i = 0; i < SUMS; i++)
        v_store_words(to->lanes + i * 2 * VL, from->sums[i]);
    memcpy(to->rest, &from->rest, sizeof to->rest);
}

/* Add the nth of several lines. The asm hides the sums: else a compiler adds up the loads first,
 * and changes their order. */
INLINE void add_line(reading *all, const uint8_t *line, const int nth)
{
    UNROLL_FOR (int i = 0; i < LINE; i += 4 * VL) {
        vi *sum = &all->sums[(nth * LINE + i) / (4 * VL) % SUMS];
        *sum = v_add_words(*sum, v_load_f32(line + i));
        v_hide(sum);
    }
}

/* Add 8, 4 or 2 bytes. */
INLINE void add_bytes(reading *all, const uint8_t *from, const size_t bytes)
{
    uint64_t few = 0;
    memcpy(&few, from, bytes);
    all->rest += (octet)(pair){few, 0};
}

/* Add the bytes of a packed row after its last whole line. */
INLINE void add_rest(reading *all, const uint8_t *row, int64_t from, int64_t bytes)
{
    for (; from + 8 <= bytes; from += 8)
        add_bytes(all, row + from, 8);
    if (bytes & 4)
        add_bytes(all, row + (bytes & ~7), 4);
    if (bytes & 2)
        add_bytes(all, row + (bytes & ~3), 2);
}

INLINE void twin_line(reading *all, const uint8_t *line, prefetch *cursor, const int nth,
                      const int order)
{
    prefetch_with(cursor, line, nth, order);
    add_line(all, line, nth);
}

/* Add `bytes` of every step-th row from `first` to `end`, and no other bytes, in address order
 * inside a row. */
INLINE void twin_rows(reading *all, const kvb_side *side, int first, int end, int step,
                      int64_t bytes, prefetch cursor, const int order)
{
    enum { STEP = 4 * LINE };
    for (int t = first; t < end; t += step) {
        const uint8_t *row = row_of(side, t, order), *line = row,
                      *whole = row + bytes / LINE * LINE;
        for (; whole - line >= STEP; line += STEP)
            UNROLL_FOR (int i = 0; i < STEP; i += LINE)
                twin_line(all, line + i, &cursor, i / LINE, order);
        for (; line < whole; line += LINE)
            twin_line(all, line, &cursor, 0, order);
        if (bytes % LINE) {
            prefetch_with(&cursor, line, 0, order);
            add_rest(all, row, bytes / LINE * LINE, bytes);
        }
    }
}

/* Add the scales of a plane, which softmax reads, to the nth sum. */
INLINE void twin_scales(reading *all, const kvb_tile *tile, const float *scale, const int nth)
{
    if (!scale)
        return;
    vi *sum = &all->sums[nth];
    int t = tile->lead;
    for (; t + VL <= tile->count; t += VL)
        *sum = v_add_words(*sum, v_load(scale + t));
    if (t < tile->count)
        *sum = v_add_words(*sum, v_load_n(scale + t, tile->count - t));
}

INLINE void twin_side(reading *all, const kvb_tile *tile, const kvb_side *side, const int order)
{
    const bool packed = side->block && side->bytes % LINE;
    prefetch cursor = packed ? prefetch_block(side) : prefetch_from(side, side->bytes);
    if (side->block) /* a block may have a gap after its cells */
        twin_rows(all, side, 0, tile->count, LANES, side->block, cursor, order);
    else if (order == ORDER_ROWS) /* without gaps, so all rows are read as one */
        twin_rows(all, side, 0, 1, 1, tile->count * side->schedule->kv_heads * side->bytes, cursor,
                  order);
    else
        twin_rows(all, side, tile->lead, tile->count, 1, side->bytes, cursor, order);
}

/* Read K, then the scales of both planes, then V. */
INLINE void twin_tile(const kvb_tile *tile, kvb_sum *sum, const int order)
{
    reading all;
    reading_load(&all, sum);
    twin_side(&all, tile, &tile->k, order);
    twin_scales(&all, tile, tile->k.scale, 0);
    twin_scales(&all, tile, tile->v.scale, 1);
    twin_side(&all, tile, &tile->v, order);
    reading_store(&all, sum);
}

/* Read a tile. The twin's schedule has one order for both planes. */
static void twin(const kvb_tile *tile, kvb_sum *sum)
{
    const int32_t order = tile->k.schedule->order;
    if (order == ORDER_PLAIN)
        twin_tile(tile, sum, ORDER_PLAIN);
    else if (order == ORDER_ROWS)
        twin_tile(tile, sum, ORDER_ROWS);
    else if (order == ORDER_LISTED)
        twin_tile(tile, sum, ORDER_LISTED);
    else
        twin_tile(tile, sum, ORDER_LISTED_L2);
}
