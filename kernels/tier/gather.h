/* Store packed rows past the caches. Rows that follow each other are gathered and stored as whole
 * lines. Parts of lines that other rows share are stored by ordinary stores, without touching the
 * bytes of those rows. A file that includes this defines GATHER_LINE(to, from), which streams a
 * line. */
#ifndef KVB_GATHER_H
#define KVB_GATHER_H

#include <string.h>

#include "base/words.h"

typedef struct gather {
    _Alignas(LINE) uint8_t bytes[LINE + DIM_MAX * 4];
    uint8_t *line; /* target of bytes[0]: the start of a line */
    uint8_t *next; /* target of the next row, if it follows; null before the first row */
    int64_t begin; /* bytes[begin .. end) are filled */
    int64_t end;
} gather;

static inline void gather_begin(gather *g)
{
    g->next = NULL;
    g->begin = g->end = 0;
}

/* Store the rest, which is less than a line. */
static inline void gather_end(gather *g)
{
    if (g->end > g->begin)
        memcpy(g->line + g->begin, g->bytes + g->begin, (size_t)(g->end - g->begin));
    g->begin = g->end;
}

/* Return where in the buffer to put the row whose target is `to`. */
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

/* Call when a row of `bytes` bytes was put there: stores the lines that are full. */
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
