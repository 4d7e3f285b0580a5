/* The waits of a thread after each of its units, in a load that has a pause. */
#ifndef KVB_PACE_H
#define KVB_PACE_H

#include "base/task.h"
#include "base/ticks.h"

typedef struct kvb_pace {
    double pause; /* a wait lasts `pause` times as long as its unit; 0 = no waits */
    int64_t from; /* nanoseconds: when the unit began */
} kvb_pace;

/* Wait after the unit that began at `from` and has just ended, `pause` times as long as it took.
 * Returns the time when the wait ended and the next unit begins. */
static inline int64_t kvb_wait_after(double pause, int64_t from)
{
    int64_t now = kvb_nanoseconds();
    const int64_t until = now + (int64_t)(pause * (double)(now - from));
    for (; now < until; now = kvb_nanoseconds())
        kvb_pause();
    return now;
}

/* Call when a thread begins a pass. */
static inline kvb_pace kvb_pace_of(const kvb_task *task)
{
    return (kvb_pace){task->pause, task->pause > 0.0 ? kvb_nanoseconds() : 0};
}

/* Call when a unit has ended. */
static inline void kvb_pace_unit(kvb_pace *pace)
{
    if (pace->pause > 0.0)
        pace->from = kvb_wait_after(pace->pause, pace->from);
}

#endif
