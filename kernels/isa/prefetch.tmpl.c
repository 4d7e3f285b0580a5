/* What a stage prefetches with each line that it reads, as its plane's schedule says. */

/* A cursor over rows to prefetch, one line at a time. It takes a line of each of `streams` rows in
 * turn, in the order of the walk's list, whatever the order in which a stage reads. Hardware
 * prefetchers follow such a sequence; they do not follow one that jumps between all the rows that a
 * stage reads at a time. */
typedef struct prefetch {
    const uint8_t *from;       /* address of the next line, without the row's offset in the list */
    const int64_t *next, *end; /* offsets of the rows that are still to come in this turn */
    int64_t streams, left;     /* `left`: lines left of each row */
    /* lines of an entry; bytes from one to the next, below LINE if rows do not begin on lines */
    int64_t lines, step;
    int64_t distance; /* from the schedule */
} prefetch;

/* Begin a cursor. `lines`: lines of one row. In a plain tile the cursor is never used. */
INLINE prefetch prefetch_by(const kvb_side *side, int64_t lines, int64_t step)
{
    const kvb_asked *asked = &side->asked;
    if (side->schedule->order == ORDER_PLAIN)
        return (prefetch){0};
    lines *= asked->rows_per_entry;
    return (prefetch){
        .from = asked->rows.from,
        .next = asked->rows.at,
        .end = asked->rows.at + asked->streams,
        .streams = asked->streams,
        .left = lines,
        .lines = lines,
        .step = step,
        .distance = side->schedule->distance,
    };
}

/* Begin a cursor over the first `bytes` of rows that begin on a line. */
INLINE prefetch prefetch_from(const kvb_side *side, int64_t bytes)
{
    return prefetch_by(side, (bytes + LINE - 1) / LINE, LINE);
}

/* Begin a cursor over all lines of transposed blocks. */
INLINE prefetch prefetch_block(const kvb_side *side)
{
    prefetch cursor = prefetch_by(side, (side->block + LINE - 1) / LINE, LINE);
    cursor.left = cursor.lines /= LANES; /* an entry is LANES rows: whole blocks */
    return cursor;
}

INLINE void prefetch_line(prefetch *a, const int order)
{
    if (order == ORDER_PLAIN)
        return;
    if (order == ORDER_RUNS) {
        (void)*(const volatile uint8_t *)a->from;
        kvb_fetch(a->from + a->distance, true);
        a->from += LINE;
        return;
    }
    const uint8_t *line = a->from + *a->next;
    kvb_fetch(line, order != ORDER_LISTED);
    if (++a->next != a->end)
        return;
    /* steps above LINE skip a line now and then; into L2 it must be prefetched, too */
    if (a->step > LINE && order != ORDER_LISTED && a->left == 1)
        kvb_fetch(line + LINE, true);
    a->from += a->step;
    if (--a->left) {
        a->next -= a->streams;
        return;
    }
    a->left = a->lines;
    a->from -= a->lines * a->step;
    a->end += a->streams;
}

/* Prefetch while a line (or the same bytes of a packed row) is read: the nth of several lines that
 * are side by side. */
INLINE void prefetch_with(prefetch *a, const uint8_t *line, const int nth, const int order)
{
    if (order == ORDER_ROWS) {
        if (nth % LINES_PER_REQUEST == 0)
            kvb_fetch(line + a->distance, true);
    } else
        prefetch_line(a, order);
}

/* Call before rows from t on are read in runs: the lines to touch are those of the next run, or
 * after the tile's last row those from side->then on. */
INLINE void prefetch_of(prefetch *a, const kvb_tile *tile, const kvb_side *side, int64_t t,
                        const int order)
{
    if (order != ORDER_RUNS)
        return;
    const int64_t at = t + side->schedule->run_rows;
    a->from = at < tile->count ? side->rows.from + at * side->bytes
                               : side->then + (at - tile->count) * side->bytes;
}

/* Return row t of a side: computed if rows are in address order, else from the list. */
INLINE const uint8_t *row_of(const kvb_side *side, int64_t t, const int order)
{
    return order >= ORDER_ROWS ? side->rows.from + t * side->bytes : kvb_row_at(side->rows, t);
}
