/* A group: query rows that share a KV head. */
#ifndef KVB_GROUP_H
#define KVB_GROUP_H

#include "tier/tile.h"

/* The q of a group as whole numbers or as bf16, for `dot`. */
typedef struct kvb_prepared {
    /* the value of code 1 of each query row; NaN if q is not finite. For packed formats steps and
     * firsts are after the codes */
    float step[Q_ROWS];
    int32_t first[Q_ROWS]; /* the start value of a score's sum */
    _Alignas(LINE) int8_t codes[];
} kvb_prepared;

/* Bytes of kvb_prepared with its codes, and for packed formats steps and firsts: seven bytes per
 * element. Enough for q as floats, too. */
static inline int64_t prepared_bytes(int64_t dim)
{
    return at_least((int64_t)sizeof(kvb_prepared) + 7 * Q_ROWS * round_up(dim, 2 * LINE),
                    Q_ROWS * round_up(dim, LANES) * (int64_t)sizeof(float));
}

/* Return the index in q of element d of a query row. */
static inline int64_t q_index(int64_t d, int64_t q_row, int64_t slots, int64_t part)
{
    return (d / part * slots + q_row) * part + d % part;
}

/* Query rows that share a KV head, up to Q_ROWS, with their softmax state. A sequence has a query
 * row for each of its queries and each query head. */
typedef struct kvb_group {
    int32_t q_rows;
    int32_t slots; /* q_rows rounded up to a class: 1, 2, 4 or 8 */
    int32_t k_dim, v_dim;
    int64_t k_pad, v_pad; /* dims rounded up to a multiple of LANES */
    /* elements of one query row stored side by side in q: see q_part of kvb_tier; `dot`: k_pad */
    int64_t part;
    /* [k_pad / part][slots][part], times scale * log2(e); zero after dim and after q_rows */
    const float *q;
    /* [Q_ROWS]: each query row attends to tokens 0 .. kept and first .. end. Of the tokens from
     * `newest` on, only those whose bit is set in its word */
    int64_t *kepts, *firsts, *ends;
    uint32_t *words;
    int64_t newest; /* after all tokens if the mask is not a tree */
    /* all query rows attend to tokens 0 .. all_kept and all_from .. all_to */
    int64_t all_kept, all_from, all_to;
    /* changes of scores before the mask, in log2 units. cap: softcap, 0 = none. slopes, owns:
     * [Q_ROWS] or null; slope * (token - own token) is added to a score */
    float cap;
    float *slopes;
    int64_t *owns;
    float *max; /* [Q_ROWS], the largest score so far, in log2 units */
    float *sum; /* [Q_ROWS][LANES], one sum per lane */
    /* [Q_ROWS], set by the stage `max`: PV multiplies the accumulators by it */
    float *rescale;
    float *acc; /* [slots][v_pad] */
    union {     /* q as `prepare_query` of a QK half makes it, or null */
        kvb_prepared *prepared;
        /* floats in the order in which a load returns the elements of a row: isa/row/deal.tmpl.c */
        float *dealt;
    };
} kvb_group;

/* Positions in a tile for one query row. kvb_kept_of: where its kept tokens end; kvb_lead_of: where
 * its other tokens begin; kvb_attended_of: where they end, 0 if that is before the tile. */
static inline int32_t kvb_kept_of(const kvb_tile *tile, const kvb_group *group, int q_row)
{
    const int64_t left = group->kepts[q_row] - tile->first;
    return (int32_t)at_least(tile->lead, at_most(tile->count, left));
}
static inline int32_t kvb_lead_of(const kvb_tile *tile, const kvb_group *group, int q_row)
{
    const int64_t lead = group->firsts[q_row] - tile->first;
    return (int32_t)at_least(tile->lead, at_most(tile->count, lead));
}
static inline int32_t kvb_attended_of(const kvb_tile *tile, const kvb_group *group, int q_row)
{
    const int64_t left = group->ends[q_row] - tile->first;
    return (int32_t)at_least(0, at_most(tile->count, left));
}

/* Whether some score of a tile must become -inf: a query row does not attend to its token, or it is
 * padding after the last token, up to a multiple of LANES. */
static inline bool kvb_masked(const kvb_tile *tile, const kvb_group *group)
{
    const int64_t end = tile->first + tile->count;
    return tile->lead || tile->count % LANES || end > group->all_to ||
           (tile->first < group->all_from && end > group->all_kept);
}

/* Whether scores get a softcap or slopes. */
static inline bool kvb_reshaped(const kvb_group *group)
{
    return group->cap != 0.0f || group->slopes;
}

/* Return the first token of a tile for which words have a bit, or `count` if there is none. */
static inline int32_t kvb_worded(const kvb_tile *tile, const kvb_group *group)
{
    return (int32_t)at_least(0, at_most(tile->count, group->newest - tile->first));
}
/* Whether a query row attends to token t of a tile, from kvb_worded() on. */
static inline bool kvb_word_has(const kvb_tile *tile, const kvb_group *group, int q_row, int32_t t)
{
    return group->words[q_row] >> (tile->first + t - group->newest) & 1;
}

/* Return the index of a group's class: 1, 2, 4 or 8 query rows. A stage is compiled for each. */
static inline int kvb_class(int64_t q_rows)
{
    return q_rows > 4 ? 3 : q_rows > 2 ? 2 : q_rows > 1 ? 1 : 0;
}

#endif
