/* What a stage asks for while it goes: nothing, or what a list has, line after line. Or it takes rows one after another, each
 * whole, asks with every line for the one that lies `apart` from it, and computes where rows lie: hardware that learns the
 * stride of an instruction's addresses does not where they come out of a list. Or it takes a run of rows in whatever order,
 * and with every line touches, that is loads, one of the run that comes next, in the order of addresses. Hardware runs ahead
 * of those loads, and sees no others: the run's own lines were touched before, and are in L1. */
enum { NOTHING, LISTED, ROW_BY_ROW, TOUCHED };

/* Of lines that are read in the order of addresses, every fourth asks for another. Hardware asks for those between: a
 * thread by itself reads a tenth to a fifth more than where it asks for all. Two rows side by side, fewer lines of a row at
 * a time, and work that keeps a core behind memory, or has to fetch q or sums for each row, do want every line asked for. */
enum { ASKED = 4 };

/* A cursor over rows to prefetch: one line at a time, `side` rows side by side, in the order that the walk gives them and
 * whatever order they are consumed in. Hardware that follows streams keeps up with such a sequence; it loses one that
 * hops over all the rows that a stage consumes at once. */
typedef struct ahead {
    const uint8_t *from;       /* where the next line would be of a row that lies at 0, */
    const int64_t *next, *end; /* and of those side by side, the rows whose turn is still to come */
    int64_t side, left;        /* lines left of each */
    int64_t lines, step;       /* of a row; from one to the next: less than a line where rows begin anywhere */
    const int64_t *row, *last; /* row after row: `next` are lines side by side of this one, which `from` points into */
    const uint8_t *base;       /* of these rows */
    bool far, gaps;            /* into L2; steps of more than a line */
    int64_t apart;             /* a tile's whose rows lie one behind another */
} ahead;

static const int64_t turn_lines[] = {0, LINE, 2 * LINE, 3 * LINE, 4 * LINE, 5 * LINE, 6 * LINE, 7 * LINE};

/* There may be no rows for a cursor that is never used. `lines`: of one row. */
INLINE ahead ahead_by(const kvb_tile *tile, kvb_places rows, int64_t lines, int64_t step)
{
    const bool gaps = step > LINE;
    lines *= tile->each;
    if (!rows.at || !tile->far || !tile->turn)
        return (ahead){rows.from, rows.at, rows.at ? rows.at + tile->side : NULL, tile->side, lines, lines, step, NULL,
                       NULL, NULL, tile->far, gaps, tile->apart};
    lines /= tile->turn;
    return (ahead){kvb_row_at(rows, 0), turn_lines, turn_lines + tile->turn, tile->turn, lines, lines, tile->turn * LINE,
                   rows.at, rows.at + (tile->count - 1) / tile->each, rows.from, tile->far, gaps, tile->apart};
}

/* The first `bytes` of rows that begin a line. */
INLINE ahead ahead_from(const kvb_tile *tile, kvb_places rows, int64_t bytes)
{
    return ahead_by(tile, rows, (bytes + LINE - 1) / LINE, LINE);
}

INLINE void ahead_line(ahead *a, const int hint)
{
    if (hint == NOTHING)
        return;
    if (hint == TOUCHED) {
        (void)*(const volatile uint8_t *)a->from;
        kvb_fetch(a->from + a->apart, true);
        a->from += LINE;
        return;
    }
    const uint8_t *line = a->from + *a->next;
    kvb_fetch(line, a->far);
    if (++a->next != a->end)
        return;
    if (a->gaps && a->far && a->left == 1) /* or a line is left out now and then, which only L1 makes good */
        kvb_fetch(line + LINE, true);
    a->from += a->step;
    if (--a->left) {
        a->next -= a->side;
        return;
    }
    a->left = a->lines;
    if (a->far && a->row) {
        a->row += a->row < a->last;
        a->from = a->base + *a->row;
        a->next -= a->side;
        return;
    }
    a->from -= a->lines * a->step;
    a->end += a->side;
}

/* While this line is consumed, or as much of a packed row: the nth of several that lie side by side. */
INLINE void ahead_with(ahead *a, const uint8_t *line, const int nth, const int hint)
{
    if (hint == ROW_BY_ROW) {
        if (nth % ASKED == 0)
            kvb_fetch(line + a->apart, true);
    } else
        ahead_line(a, hint);
}

/* Before rows from t on are consumed: what is touched meanwhile lies `reach` rows further, and goes on in the rows `then`. */
INLINE void ahead_of(ahead *a, const kvb_tile *tile, kvb_places rows, kvb_places then, int64_t t, const int hint)
{
    if (hint != TOUCHED)
        return;
    const int64_t at = t + tile->reach;
    a->from = at < tile->count ? rows.from + at * tile->stride : then.from + (at - tile->count) * tile->stride;
}

/* Row t of a tile's. */
INLINE const uint8_t *row_of(const kvb_tile *tile, kvb_places rows, int64_t t, const int hint)
{
    return hint >= ROW_BY_ROW ? rows.from + t * tile->stride : kvb_row_at(rows, t);
}

/* A stage for groups of 1, 2, 4 and 8 heads: <stage>1_<way> to <stage>8_<way> are <stage>_tile_<way> with prefetches or
 * without, as the tile's rows of `plane` say. Lists are compiled twice, so that no line asks how far it goes. `few`: most
 * heads that take rows one after another, where more touch; or NEVER. */
enum { NEVER = -1 };
/* The most heads that take rows of DTYPE whole: FEW_HEADS, or four where its elements are floats as they stand (PLAIN) and a
 * line is a vector. */
#define ROW_HEADS (PLAIN && VL == 16 ? 4 : 2)
#define STAGE_OF(stage, way, heads, plane, floats, few)                                                             \
    static void CAT(CAT(CAT(stage, heads), _), way)(const kvb_tile *tile, const kvb_group *group, floats *scores)   \
    {                                                                                                               \
        if (!tile->plane##_ahead.at)                                                                                \
            CAT(CAT(stage, _tile_), way)(tile, group, scores, heads, NOTHING);                                      \
        else if (heads <= (few) && tile->stride)                                                                    \
            CAT(CAT(stage, _tile_), way)(tile, group, scores, heads, ROW_BY_ROW);                                   \
        else if ((few) >= 0 && tile->stride)                                                                        \
            CAT(CAT(stage, _tile_), way)(tile, group, scores, heads, TOUCHED);                                      \
        else if (tile->far)                                                                                         \
            CAT(CAT(stage, _tile_), way)(tile, group, scores, heads, LISTED);                                       \
        else                                                                                                        \
            CAT(CAT(stage, _tile_), way)(tile, group, scores, heads, LISTED);                                       \
    }
#define STAGE(stage, way, plane, floats, few)                                                                       \
    STAGE_OF(stage, way, 1, plane, floats, few)                                                                     \
    STAGE_OF(stage, way, 2, plane, floats, few)                                                                     \
    STAGE_OF(stage, way, 4, plane, floats, few)                                                                     \
    STAGE_OF(stage, way, 8, plane, floats, few)

/* <stage><heads>_<DTYPE>, apart from the stages that call it: those would lose registers to what they do not use. */
#define APART_OF(stage, heads, floats)                                                                              \
    static __attribute__((noinline)) void CAT(stage##heads##_, DTYPE)(const kvb_tile *tile, const kvb_group *group, \
                                                                      floats *scores)                               \
    {                                                                                                               \
        CAT(stage##_of_, DTYPE)(tile, group, scores, heads);                                                        \
    }

#define CLASSES(stage, way) {CAT(stage##1_, way), CAT(stage##2_, way), CAT(stage##4_, way), CAT(stage##8_, way)}
