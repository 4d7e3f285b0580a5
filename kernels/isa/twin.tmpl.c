/* The pure read of a tile: every line of its rows, and its scales, in the order of its schedule. No dtype is asked for. */

/* What a packed row has behind its last whole line: 8 bytes at a time, the last of them once more where less are left. */
INLINE void twin_rest(const uint8_t *row, int64_t from, int64_t bytes)
{
    for (; from < bytes; from += 8) {
        uint64_t word;
        memcpy(&word, row + at_most(from, bytes - 8), sizeof word);
        __asm__ volatile("" : : "r"(word));
    }
}

INLINE void twin_line(const uint8_t *line, prefetch *cursor, const int nth, const int order)
{
    prefetch_with(cursor, line, nth, order);
    UNROLL for (int i = 0; i < LINE; i += 4 * VL)
        v_pin(v_load_f32(line + i));
}

/* The bytes of the rows from `first` to `end`, or of every step-th of them, and no others, in address order inside a row. */
INLINE void twin_rows(const kvb_tile *tile, kvb_places rows, int first, int end, int step, int64_t bytes, prefetch cursor,
                      const int order)
{
    enum { STEP = 4 * LINE };
    for (int t = first; t < end; t += step) {
        const uint8_t *row = row_of(tile, rows, t, order), *line = row, *whole = row + bytes / LINE * LINE;
        for (; whole - line >= STEP; line += STEP)
            UNROLL for (int i = 0; i < STEP; i += LINE)
                twin_line(line + i, &cursor, i / LINE, order);
        for (; line < whole; line += LINE)
            twin_line(line, &cursor, 0, order);
        if (bytes % LINE) {
            prefetch_with(&cursor, line, 0, order);
            twin_rest(row, bytes / LINE * LINE, bytes);
        }
    }
}

/* Between K and V, as softmax reads them. */
INLINE void twin_scales(const kvb_tile *tile)
{
    for (int t = 0; tile->k_scale && t < tile->count; t += VL) {
        v_pin(v_load(tile->k_scale + t));
        v_pin(v_load(tile->v_scale + t));
    }
}

INLINE void twin_tile(const kvb_tile *tile, int64_t bytes, const int order)
{
    const bool one = order == ORDER_ROWS; /* whole steps, without gaps: as if each plane's rows were one */
    const int end = one ? 1 : tile->count;
    const int64_t wide = one ? tile->count * tile->schedule->kv_heads * bytes : bytes;
    prefetch k = prefetch_from(tile, tile->next.k, bytes), v = prefetch_from(tile, tile->next.v, bytes);
    if (tile->k_block) /* gaps behind a block's cells */
        twin_rows(tile, tile->k, 0, tile->count, LANES, tile->k_block, k, order);
    else
        twin_rows(tile, tile->k, 0, end, 1, wide, k, order);
    twin_scales(tile);
    twin_rows(tile, tile->v, tile->lead, end, 1, wide, v, order);
}

static void twin(const kvb_tile *tile, int64_t bytes)
{
    if (tile->schedule->order == ORDER_PLAIN)
        twin_tile(tile, bytes, ORDER_PLAIN);
    else if (tile->schedule->order == ORDER_ROWS)
        twin_tile(tile, bytes, ORDER_ROWS);
    else if (tile->schedule->order == ORDER_LISTED)
        twin_tile(tile, bytes, ORDER_LISTED);
    else
        twin_tile(tile, bytes, ORDER_LISTED_L2);
}
