/* Counts what a store moves. */
#include <stdlib.h>

#include "cache/touched.h"
#include "store/store.h"

/* Return the tokens of a sequence that are written. A ring keeps the last ones that it gets. */
static kvb_reach written(const kvb_touched *t, int64_t seq)
{
    const kvb_store *a = t->of;
    const int64_t end = a->cache->lengths[seq] + a->tokens;
    const int64_t count = a->cache->ring ? at_most(a->tokens, a->cache->capacity) : a->tokens;
    return (kvb_reach){.first = end - count, .end = end};
}

/* Count the tokens first .. end of a sequence that the table does not leave out. kept[i]: whether
 * first + i is one of them. */
static int64_t kept_tokens(const kvb_cache *c, int64_t seq, int64_t first, int64_t end,
                           uint8_t *kept)
{
    int64_t row, count = 0;
    for (int64_t i = 0; i < end - first; i++) {
        kvb_offsets(c, &c->k, seq, 0, first + i, 1, &row, NULL);
        kept[i] = row >= 0;
        count += kept[i];
    }
    return count;
}

/* Count the lines of a plane's source rows, for the last `count` tokens of one sequence. */
static double source_lines(const kvb_store *a, const kvb_plane *p, int64_t seq, const uint8_t *kept,
                           int64_t count, int64_t *next)
{
    int64_t turns = a->head_major ? a->cache->kv_heads : 1;
    int64_t bytes = a->cache->kv_heads / turns * p->dim * (int64_t)sizeof *a->k;
    double lines = 0.0;
    for (int64_t turn = 0; turn < turns; turn++)
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (seq * turns + turn + 1) * a->tokens - count + i;
            if (kept[i])
                lines += kvb_lines_on(at * bytes, (at + 1) * bytes, next);
        }
    return lines;
}

/* Return how often a source element is read: for its code, and for its row's scale (if any). */
static double source_reads(const kvb_plane *p)
{
    return kvb_scaled(p) || kvb_formats[p->dtype].elements > 1 ? 2.0 : 1.0;
}

/* A store counts the rows that are kept, and their source. Padding is in `issued` and `line`. */
int32_t kvb_traffic_store(const kvb_store *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const kvb_touched all = {.cache = c, .of = a, .stores = true, .tokens_of = written};
    double rows = 0.0, of_source = 0.0, of_rows;
    int64_t next[PLANES] = {0};
    uint8_t *kept = malloc((size_t)at_most(a->tokens, c->capacity));
    if (!kept)
        return kvb_fail(KVB_NO_MEMORY, "no memory to count %lld tokens", (long long)a->tokens);
    for (int64_t b = 0; b < c->batch; b++) {
        const kvb_reach r = written(&all, b);
        rows += (double)(kept_tokens(c, b, r.first, r.end, kept) * c->kv_heads);
        for (int32_t p = 0; p < PLANES; p++)
            of_source += source_lines(a, kvb_plane_of(c, p), b, kept, r.end - r.first, &next[p]);
    }
    free(kept);
    int32_t code = kvb_lines_of(&all, rows, &of_rows);
    *t = (kvb_traffic){.kv = rows * kvb_row_sizes(c), .scales = rows * kvb_scale_sizes(c)};
    t->compulsory = t->kv + t->scales;
    t->issued = t->scales;
    for (int32_t i = 0; i < PLANES; i++) {
        const kvb_plane *p = kvb_plane_of(c, i);
        const double source = rows * (double)p->dim * sizeof *a->k;
        t->compulsory += source;
        t->issued += rows * (double)p->row_bytes + source_reads(p) * source;
    }
    t->line = LINE * (of_rows + of_source);
    return code;
}
