/* What a stage asks for while it goes, as its tile's schedule says: with each line that it
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
INLINE prefetch prefetch_by(const kvb_tile *tile, kvb_places rows, int64_t lines, int64_t step)
{
    const int64_t streams = tile->next.streams;
    if (tile->schedule->order == ORDER_PLAIN)
        return (prefetch){0};
    lines *= tile->next.rows_per_entry;
    return (prefetch){rows.from, rows.at, rows.at + streams,       streams, lines,
                      lines,     step,    tile->schedule->distance};
}

/* The first `bytes` of rows that begin a line. */
INLINE prefetch prefetch_from(const kvb_tile *tile, kvb_places rows, int64_t bytes)
{
    return prefetch_by(tile, rows, (bytes + LINE - 1) / LINE, LINE);
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

/* Before rows from t on are consumed: what is touched meanwhile lies a run further, and goes on in
 * the rows `then`. */
INLINE void prefetch_of(prefetch *a, const kvb_tile *tile, kvb_places rows, kvb_places then,
                        int64_t t, const int order)
{
    if (order != ORDER_RUNS)
        return;
    const int64_t at = t + tile->schedule->run_rows;
    a->from = at < tile->count ? rows.from + at * tile->stride
                               : then.from + (at - tile->count) * tile->stride;
}

/* Row t of a tile's. */
INLINE const uint8_t *row_of(const kvb_tile *tile, kvb_places rows, int64_t t, const int order)
{
    return order >= ORDER_ROWS ? rows.from + t * tile->stride : kvb_row_at(rows, t);
}

/* A stage for groups of 1, 2, 4 and 8 heads: <stage>1_<kernel> to <stage>8_<kernel> are
 * <stage>_tile_<kernel>, compiled for each order in which a tile may be read: each by itself, for
 * compilers spill in one what they keep for another. `whole`: most heads that take rows whole, or
 * NEVER where rows are packed, which no schedule has in order. `runs`: least heads that take runs.
 */
enum { NEVER = -1 };
#define IN_ORDER(stage, kernel, heads, floats, order)                                             \
    static NOINLINE void CAT(CAT(stage##heads##_, kernel),                                        \
                             order)(const kvb_tile *tile, const kvb_group *group, floats *scores) \
    {                                                                                             \
        CAT(stage##_tile_, kernel)(tile, group, scores, heads, order);                            \
    }
#define STAGE_OF(stage, kernel, heads, floats, whole, runs)                                \
    IN_ORDER(stage, kernel, heads, floats, ORDER_PLAIN)                                    \
    IN_ORDER(stage, kernel, heads, floats, ORDER_LISTED)                                   \
    IN_ORDER(stage, kernel, heads, floats, ORDER_LISTED_L2)                                \
    IN_ORDER(stage, kernel, heads, floats, ORDER_ROWS)                                     \
    IN_ORDER(stage, kernel, heads, floats, ORDER_RUNS)                                     \
    static void CAT(stage##heads##_, kernel)(const kvb_tile *tile, const kvb_group *group, \
                                             floats *scores)                               \
    {                                                                                      \
        const int32_t order = tile->schedule->order;                                       \
        if (order == ORDER_PLAIN)                                                          \
            CAT(CAT(stage##heads##_, kernel), ORDER_PLAIN)(tile, group, scores);           \
        else if (order == ORDER_LISTED)                                                    \
            CAT(CAT(stage##heads##_, kernel), ORDER_LISTED)(tile, group, scores);          \
        else if ((whole) == NEVER || order == ORDER_LISTED_L2)                             \
            CAT(CAT(stage##heads##_, kernel), ORDER_LISTED_L2)(tile, group, scores);       \
        else if (heads <= (whole) && (heads < (runs) || order == ORDER_ROWS))              \
            CAT(CAT(stage##heads##_, kernel), ORDER_ROWS)(tile, group, scores);            \
        else                                                                               \
            CAT(CAT(stage##heads##_, kernel), ORDER_RUNS)(tile, group, scores);            \
    }
#define STAGE(stage, kernel, floats, whole, runs)   \
    STAGE_OF(stage, kernel, 1, floats, whole, runs) \
    STAGE_OF(stage, kernel, 2, floats, whole, runs) \
    STAGE_OF(stage, kernel, 4, floats, whole, runs) \
    STAGE_OF(stage, kernel, 8, floats, whole, runs)

#define CLASSES(stage, kernel) \
    {CAT(stage##1_, kernel), CAT(stage##2_, kernel), CAT(stage##4_, kernel), CAT(stage##8_, kernel)}
