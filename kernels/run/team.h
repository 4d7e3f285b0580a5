/* Inside a team: the functions of team.c for runs and loads, and the barrier between passes. */
#ifndef KVB_TEAM_H
#define KVB_TEAM_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/task.h"
#include "base/ticks.h"

/* bytes between data of two threads: processors fetch lines in pairs */
enum { APART = 128 };
/* about 0.1 ms; then another process may be on the CPU of the thread that is awaited */
enum { SPINS_BEFORE_YIELD = 4096 };

typedef void (*kvb_job)(kvb_team *team, int32_t thread, void *argument);

/* A thread of a team, and its results of a run, which the caller adds up. */
typedef struct kvb_member {
    _Alignas(APART) pthread_t thread;
    kvb_team *team;
    int32_t index;
    kvb_arena scratch;
    int64_t nanoseconds; /* in the tasks' own work */
    int64_t switches;
    int64_t faults;
    double ticks[3];
} kvb_member;

struct kvb_team {
    pthread_mutex_t turn; /* held by the caller whose job runs */
    pthread_mutex_t lock; /* guards the members down to `closing` */
    pthread_cond_t wake;
    pthread_cond_t slept;
    pthread_cond_t met_again; /* only in a crowded team */
    kvb_job job;
    void *argument;
    int64_t jobs; /* given out so far */
    int32_t busy; /* threads still in the job */
    bool closing;
    bool crowded; /* more threads than CPUs: a thread that waits for others sleeps */
    int32_t threads;
    pid_t process;
    _Alignas(APART) _Atomic int32_t arrived;
    _Alignas(APART) _Atomic uint32_t round;
    int64_t met;         /* nanoseconds: when the last thread arrived at the last meeting */
    _Atomic bool ending; /* set by the caller to end a load */
    bool ends;           /* value of `ending` when the last thread arrived at the last meeting */
    kvb_member members[];
};

#pragma GCC visibility push(hidden)

/* Run the job on every thread and sleep until the last one is done. */
void kvb_team_do(kvb_team *team, kvb_job job, void *argument);
/* The same in two steps; the caller can do something else in between. */
void kvb_team_begin(kvb_team *team, kvb_job job, void *argument);
void kvb_team_end(kvb_team *team);
/* kvb_team_tell: a thread of the job sets *told. kvb_team_await: the caller sleeps until then. */
void kvb_team_tell(kvb_team *team, bool *told);
void kvb_team_await(kvb_team *team, const bool *told);
/* Give every thread at least `bytes` of scratch. The thread itself touches it first. */
int32_t kvb_team_scratch(kvb_team *team, int64_t bytes);

#pragma GCC visibility pop

/* The barrier: return when every thread has arrived. The last one to arrive calls the task's
 * `count` (if any) and sets `met`. So a thread that leaves late neither shortens nor lengthens a
 * pass. `met` stays until the reader arrives at the next meeting. */
static inline void kvb_team_meet(kvb_team *team, kvb_task *task)
{
    uint32_t round = atomic_load_explicit(&team->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == team->threads - 1) {
        if (task && task->count)
            task->count(task);
        team->met = kvb_nanoseconds();
        team->ends = atomic_load_explicit(&team->ending, memory_order_relaxed);
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        if (team->crowded)
            pthread_mutex_lock(&team->lock);
        atomic_store_explicit(&team->round, round + 1, memory_order_release);
        if (team->crowded) {
            pthread_cond_broadcast(&team->met_again);
            pthread_mutex_unlock(&team->lock);
        }
        return;
    }
    if (team->crowded) {
        pthread_mutex_lock(&team->lock);
        while (atomic_load_explicit(&team->round, memory_order_acquire) == round)
            pthread_cond_wait(&team->met_again, &team->lock);
        pthread_mutex_unlock(&team->lock);
        return;
    }
    for (int64_t spins = 1; atomic_load_explicit(&team->round, memory_order_acquire) == round;
         spins++)
        if (spins % SPINS_BEFORE_YIELD == 0)
            sched_yield();
        else
            kvb_pause();
}

#endif
