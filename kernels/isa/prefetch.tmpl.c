/* What a stage asks for while it goes, as its plane's schedule says: with each line that it
 * consumes. */

/* A cursor over rows to prefetch: one line at a time, `streams` rows side by side, in the order
 * that the walk gives them and whatever order they are consumed in. Hardware that follows streams
 * keeps up with such a sequence; it loses one that hops over all the rows that a stage consumes at
 * once. */
typedef struct prefetch {
    const uint8_t *from;       /* where the next line would be of a row that lies at 0, */
    const int64_t *next, *end; /* and of those side by side, the rows whose turn is still to come */
    int64_t streams, left;     /* lines left of each */
    /* of a row; from one to the next: less than a line where rows begin anywhere */
    int64_t lines, step;
    int64_t distance; /* the schedule's */
} prefetch;

/* `lines`: of one row. Of a plain tile the cursor is never used. */
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

/* The first `bytes` of rows that begin a line. */
INLINE prefetch prefetch_from(const kvb_side *side, int64_t bytes)
{
    return prefetch_by(side, (bytes + LINE - 1) / LINE, LINE);
}

/* All lines of blocks. */
INLINE prefetch prefetch_block(const kvb_side *side)
{
    prefetch cursor = prefetch_by(side, (side->block + LINE - 1) / LINE, LINE);
    cursor.left = cursor.lines /= LANES; /* entries are of whole blocks */
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
    /* or one is left out now and then, which only L1 makes good */
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

/* While this line is consumed, or as much of a packed row: the nth of several that lie side by
 * side. */
INLINE void prefetch_with(prefetch *a, const uint8_t *line, const int nth, const int order)
{
    if (order == ORDER_ROWS) {
        if (nth % LINES_PER_REQUEST == 0)
            kvb_fetch(line + a->distance, true);
    } else
        prefetch_line(a, order);
}

/* Before rows from t on are consumed: what is touched meanwhile lies a run further, and goes on
 * where the schedule says. */
INLINE void prefetch_of(prefetch *a, const kvb_tile *tile, const kvb_side *side, int64_t t,
                        const int order)
{
    if (order != ORDER_RUNS)
        return;
    const int64_t at = t + side->schedule->run_rows;
    a->from = at < tile->count ? side->rows.from + at * side->bytes
                               : side->then + (at - tile->count) * side->bytes;
}

/* Row t of a plane's, in its order. */
INLINE const uint8_t *row_of(const kvb_side *side, int64_t t, const int order)
{
    return order >= ORDER_ROWS ? side->rows.from + t * side->bytes : kvb_row_at(side->rows, t);
}
