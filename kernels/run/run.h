/* Doing passes of tasks, for runs and loads. */
#ifndef KVB_RUN_H
#define KVB_RUN_H

#include "run/team.h"

/* The passes of a run: pass i does tasks[i % count]. */
typedef struct kvb_passes {
    kvb_task *const *tasks;
    int32_t count;
    int64_t passes;
    kvb_task *between;
    double *pass_seconds;
    int64_t nanoseconds; /* out */
} kvb_passes;

#pragma GCC visibility push(hidden)

/* pass.c: do one pass of a task, or of the parts of a series, on one thread. All threads have met
 * when it returns. Returns the nanoseconds of the task's own work. */
int64_t kvb_do_pass(kvb_team *team, kvb_task *task, int32_t thread);
int64_t kvb_do_task(kvb_team *team, kvb_task *task, int32_t thread);

/* run.c. All return a code, with its message. */
/* Check what needs no turn of the team. */
int32_t kvb_run_check(const kvb_team *team, const kvb_passes *job);
/* Check that all passes can be done, and give each thread the scratch for them. The caller must
 * have the team's turn, here and for the passes. */
int32_t kvb_run_ready(kvb_team *team, const kvb_passes *job);
/* Do the passes. Fails if a plug-in broke a rule in them. */
int32_t kvb_run_passes(kvb_team *team, kvb_passes *job, kvb_run_times *times);
/* Fail if a plug-in broke a rule in one of the tasks: then no time counts. */
int32_t kvb_run_faults(const kvb_passes *job);

#pragma GCC visibility pop

#endif
