/* Compiles a stage: QK or PV of a way to read rows, for each class of groups and each order. */
#ifndef KVB_ISA_STAGES_H
#define KVB_ISA_STAGES_H

#include "isa/template.h"

/* STAGE defines <stage>1_<way> to <stage>8_<way>, for groups of 1, 2, 4 and 8 query rows, from
 * <stage>_tile_<way>. It is compiled by itself for each order in which a tile may be read: else
 * compilers spill registers in one order for the sake of another. `side`: k or v. `whole`: most
 * query rows for which rows are read whole, or NOT_IN_ORDER if rows are packed, which no schedule
 * reads in address order. `runs`: least query rows for which rows are read in runs. */
enum { NOT_IN_ORDER = -1 };
/* LISTED_L2 differs from LISTED only in its hint. A check program is built without it, in four
 * fifths of the time. */
#ifdef KVB_ONE_HINT
#define STAGE_TO_L2(stage, way, q_rows, floats)
#define TO_L2(function) CAT(function, ORDER_LISTED)
#else
#define STAGE_TO_L2(stage, way, q_rows, floats) \
    STAGE_IN(stage, way, q_rows, floats, ORDER_LISTED_L2)
#define TO_L2(function) CAT(function, ORDER_LISTED_L2)
#endif
#define STAGE_IN(stage, way, q_rows, floats, order)                                               \
    static NOINLINE void CAT(CAT(stage##q_rows##_, way),                                          \
                             order)(const kvb_tile *tile, const kvb_group *group, floats *scores) \
    {                                                                                             \
        CAT(stage##_tile_, way)(tile, group, scores, q_rows, order);                              \
    }
#define STAGE_OF(stage, side, way, q_rows, floats, whole, runs)                          \
    STAGE_IN(stage, way, q_rows, floats, ORDER_PLAIN)                                    \
    STAGE_IN(stage, way, q_rows, floats, ORDER_LISTED)                                   \
    STAGE_TO_L2(stage, way, q_rows, floats)                                              \
    STAGE_IN(stage, way, q_rows, floats, ORDER_ROWS)                                     \
    STAGE_IN(stage, way, q_rows, floats, ORDER_RUNS)                                     \
    static void CAT(stage##q_rows##_, way)(const kvb_tile *tile, const kvb_group *group, \
                                           floats *scores)                               \
    {                                                                                    \
        const int32_t order = tile->side.schedule->order;                                \
        if (order == ORDER_PLAIN)                                                        \
            CAT(CAT(stage##q_rows##_, way), ORDER_PLAIN)(tile, group, scores);           \
        else if (order == ORDER_LISTED)                                                  \
            CAT(CAT(stage##q_rows##_, way), ORDER_LISTED)(tile, group, scores);          \
        else if ((whole) == NOT_IN_ORDER || order == ORDER_LISTED_L2)                    \
            TO_L2(CAT(stage##q_rows##_, way))(tile, group, scores);                      \
        else if (q_rows <= (whole) && (q_rows < (runs) || order == ORDER_ROWS))          \
            CAT(CAT(stage##q_rows##_, way), ORDER_ROWS)(tile, group, scores);            \
        else                                                                             \
            CAT(CAT(stage##q_rows##_, way), ORDER_RUNS)(tile, group, scores);            \
    }
#define STAGE(stage, side, way, floats, whole, runs)   \
    STAGE_OF(stage, side, way, 1, floats, whole, runs) \
    STAGE_OF(stage, side, way, 2, floats, whole, runs) \
    STAGE_OF(stage, side, way, 4, floats, whole, runs) \
    STAGE_OF(stage, side, way, 8, floats, whole, runs)

/* The functions of a stage by class, as in a half. */
#define BY_CLASS(stage, way) \
    {CAT(stage##1_, way), CAT(stage##2_, way), CAT(stage##4_, way), CAT(stage##8_, way)}

#endif
