/* Packed rows on their way past the caches: rows that lie one behind another are gathered, and
 * leave as whole lines. What is of a line that other rows share goes by ordinary stores, and no
 * byte of theirs is touched. Whoever includes this says how a line is streamed: GATHER_LINE(to,
 * from). */
#ifndef KVB_GATHER_H
#define KVB_GATHER_H

#include <string.h>

#include "base/words.h"

typedef struct gather {
    _Alignas(LINE) uint8_t bytes[LINE + DIM_MAX * 4];
    uint8_t *line; /* where the first of them belongs: a line begins there */
    uint8_t *next; /* where the next one does; null before the first row */
    int64_t begin; /* bytes from begin to before end are there */
    int64_t end;
} gather;

static inline void gather_begin(gather *g)
{
    g->next = NULL;
    g->begin = g->end = 0;
}

/* What is left of the last line. */
static inline void gather_end(gather *g)
{
    if (g->end > g->begin)
        memcpy(g->line + g->begin, g->bytes + g->begin, (size_t)(g->end - g->begin));
    g->begin = g->end;
}

/* Where to put the row that belongs at `to`. */
static inline uint8_t *gather_room(gather *g, uint8_t *to)
{
    if (g->next != to) {
        gather_end(g);
        g->begin = g->end = (int64_t)((uintptr_t)to % LINE);
        g->line = to - g->begin;
        g->next = to;
    }
    return g->bytes + g->end;
}

/* A row of so many bytes was put there. */
static inline void gather_row(gather *g, int64_t bytes)
{
    int64_t at = 0;
    g->next += bytes;
    g->end += bytes;
    for (; g->end - at >= LINE; at += LINE) {
        if (g->begin)
            memcpy(g->line + g->begin, g->bytes + g->begin, (size_t)(LINE - g->begin));
        else
            GATHER_LINE(g->line + at, g->bytes + at);
        g->begin = 0;
    }
    g->line += at;
    g->end -= at;
    memmove(g->bytes, g->bytes + at, (size_t)g->end);
}

#endif
