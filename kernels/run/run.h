/* Passes of tasks, as a run and a load do them. */
#ifndef KVB_RUN_H
#define KVB_RUN_H

#include "run/team.h"

/* What a run does: tasks[pass % count]. */
typedef struct kvb_passes {
    kvb_task *const *tasks;
    int32_t count;
    int64_t passes;
    kvb_task *between;
    double *pass_seconds;
    int64_t nanoseconds; /* out */
} kvb_passes;

#pragma GCC visibility push(hidden)

/* pass.c: one pass of a task, or of the parts of a series, on one thread; everyone has met when it
 * returns. The nanoseconds inside the task's own work. */
int64_t kvb_do_pass(kvb_team *team, kvb_task *task, int32_t thread);
int64_t kvb_do_task(kvb_team *team, kvb_task *task, int32_t thread);

/* run.c: what can be checked without the team's turn; */
int32_t kvb_run_check(const kvb_team *team, const kvb_passes *job);
/* and with it: whether all passes can be done, of which each thread has the scratch then; */
int32_t kvb_run_ready(kvb_team *team, const kvb_passes *job);
/* the same, and then the passes; */
int32_t kvb_run_in_turn(kvb_team *team, kvb_passes *job, kvb_run_times *times);
/* and after them: no time counts in which a plug-in broke a rule. */
int32_t kvb_run_faults(const kvb_passes *job);

#pragma GCC visibility pop

#endif
