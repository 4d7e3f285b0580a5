/* A pass of a task on the threads of a team. */
#include <string.h>

#include "base/pace.h"
#include "run/run.h"

int64_t kvb_do_pass(kvb_team *team, kvb_task *task, int32_t thread)
{
    void *scratch = team->members[thread].scratch.base;
    int64_t start = kvb_nanoseconds();
    task->work(task, thread, scratch);
    int64_t own = kvb_nanoseconds() - start;
    if (task->pause > 0.0 && !task->paces)
        kvb_wait_after(task->pause, start);
    kvb_team_meet(team, task);
    if (task->finish) {
        start = kvb_nanoseconds();
        task->finish(task, thread, scratch);
        own += kvb_nanoseconds() - start;
        kvb_team_meet(team, NULL);
    }
    return own;
}

/* The same for a task that counts the ticks of its stages, at the start of its scratch. */
static int64_t do_staged_pass(kvb_team *team, kvb_task *task, int32_t thread)
{
    kvb_member *me = &team->members[thread];
    double *ticks = (double *)(void *)me->scratch.base;
    memset(ticks, 0, sizeof me->ticks);
    int64_t own = kvb_do_pass(team, task, thread);
    for (int i = 0; i < 3; i++)
        me->ticks[i] += ticks[i];
    return own;
}

/* The same for a series: its parts in turn, each with its own meeting. */
static int64_t do_series(kvb_team *team, const kvb_task *task, int32_t thread)
{
    kvb_member *me = &team->members[thread];
    int64_t own = 0, start = team->met;
    for (int32_t i = 0; i < task->length; i++) {
        own += kvb_do_pass(team, task->series[i], thread);
        if (thread == 0) /* all threads share one clock, so one count is enough */
            me->ticks[task->kinds[i]] += (double)(team->met - start);
        start = team->met;
    }
    return own;
}

int64_t kvb_do_task(kvb_team *team, kvb_task *task, int32_t thread)
{
    if (task->series)
        return do_series(team, task, thread);
    return task->stages ? do_staged_pass(team, task, thread) : kvb_do_pass(team, task, thread);
}
