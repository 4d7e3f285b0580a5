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

/* run.c. All return a code with its message. */
/* Checks that need no turn of the team. */
int32_t kvb_run_check(const kvb_team *team, const kvb_passes *job);
/* Whether all passes can be done. Each thread then has the scratch that they need. This and the
 * passes need the team's turn. */
int32_t kvb_run_ready(kvb_team *team, const kvb_passes *job);
/* The passes, and whether a plug-in broke a rule in them. */
int32_t kvb_run_passes(kvb_team *team, kvb_passes *job, kvb_run_times *times);
/* Whether a plug-in broke a rule in one of the tasks: no time of it counts. */
int32_t kvb_run_faults(const kvb_passes *job);

#pragma GCC visibility pop

#endif
