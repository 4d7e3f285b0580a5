/* A group: query rows that share a KV head. */
#ifndef KVB_GROUP_H
#define KVB_GROUP_H

#include "tier/tile.h"

/* The q of a group as whole numbers, or as words of bf16. */
typedef struct kvb_prepared {
    /* what a whole one is worth; NaN where q is not finite. Of packed rows it stands with the
     * codes, */
    float step[Q_ROWS];
    int32_t first[Q_ROWS]; /* and so does what a score's sum begins with */
    _Alignas(LINE) int8_t codes[];
} kvb_prepared;

/* Room for them with steps and beginnings, seven bytes an element; or for as many floats as q has.
 */
static inline int64_t prepared_bytes(int64_t dim)
{
    return at_least((int64_t)sizeof(kvb_prepared) + 7 * Q_ROWS * round_up(dim, 2 * LINE),
                    Q_ROWS * round_up(dim, LANES) * (int64_t)sizeof(float));
}

/* Where q of a group has an element of one of its rows. */
static inline int64_t q_index(int64_t d, int64_t q_row, int64_t slots, int64_t part)
{
    return (d / part * slots + q_row) * part + d % part;
}

/* Softmax state of up to Q_ROWS query rows that share a KV head: one for each query of a sequence
 * and each of its heads. */
typedef struct kvb_group {
    int32_t q_rows;
    int32_t slots; /* q_rows rounded up to a class: 1, 2, 4 or 8 */
    int32_t k_dim, v_dim;
    int64_t k_pad, v_pad; /* dims rounded up to LANES */
    /* elements of a row that lie side by side in q: as the tier has them, of `dot` k_pad */
    int64_t part;
    /* [k_pad / part][slots][part], times scale * log2(e); zero behind dim and behind q_rows */
    const float *q;
    /* [Q_ROWS], what each attends to: tokens 0 .. kept, and first .. end; but of those from
     * `newest` on only those whose bit is set in its word */
    int64_t *kepts, *firsts, *ends;
    uint32_t *words;
    int64_t newest; /* behind all tokens where no mask is a tree */
    /* tokens that all of them attend to: 0 .. all_kept, and these */
    int64_t all_kept, all_from, all_to;
    /* what is done to scores before the mask, in units of log2: capped, unless 0; and a slope times
     * the tokens from its own one to the score's, [Q_ROWS] of each, or null */
    float cap;
    float *slopes;
    int64_t *owns;
    float *max; /* [Q_ROWS], of the scores so far, in units of log2 */
    float *sum; /* [Q_ROWS][LANES], lane-wise */
    /* [Q_ROWS], what the last softmax asks the accumulators to be multiplied by */
    float *rescale;
    float *acc; /* [slots][v_pad] */
    union {     /* what `prepare_query` of a QK half makes of q, or null */
        kvb_prepared *prepared;
        /* floats in the order in which the elements of rows are loaded: isa/row/deal.tmpl.c */
        float *dealt;
    };
} kvb_group;

/* Tokens of a tile up to the last of the first ones that a query row keeps; in front of the others
 * that it attends to; and up to the last of those: 0 where that lies before it. */
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

/* Whether some score of a tile is to be -inf: of a token that a query row does not attend to, or
 * behind the last token, up to a multiple of LANES. */
static inline bool kvb_masked(const kvb_tile *tile, const kvb_group *group)
{
    const int64_t end = tile->first + tile->count;
    return tile->lead || tile->count % LANES || end > group->all_to ||
           (tile->first < group->all_from && end > group->all_kept);
}

/* Whether more is done to scores than K's scale. */
static inline bool kvb_reshaped(const kvb_group *group)
{
    return group->cap != 0.0f || group->slopes;
}

/* The first token of a tile for which a word has a bit: `count` where none has. */
static inline int32_t kvb_worded(const kvb_tile *tile, const kvb_group *group)
{
    return (int32_t)at_least(0, at_most(tile->count, group->newest - tile->first));
}
/* Whether a query row attends to such a token. */
static inline bool kvb_word_has(const kvb_tile *tile, const kvb_group *group, int q_row, int32_t t)
{
    return group->words[q_row] >> (tile->first + t - group->newest) & 1;
}

/* Index of the class of a group: 1, 2, 4 or 8 query rows, for each of which a stage is compiled. */
static inline int kvb_class(int64_t q_rows)
{
    return q_rows > 4 ? 3 : q_rows > 2 ? 2 : q_rows > 1 ? 1 : 0;
}

#endif
