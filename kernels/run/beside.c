/* A run while another team does the passes of a load. */
#include <stdio.h>

#include "run/run.h"

/* The number of passes that checks of a load assume, because the real number is not known yet. */
enum { PASSES_MOST = INT32_MAX / 2 };

typedef struct under_way {
    const kvb_load *load;
    bool told; /* the passes ahead are done */
    int64_t from, to, passes;
} under_way;

/* Do passes until the caller ends them. All threads see that at the same meeting. Thread 0 keeps
 * the times. */
static void do_load(kvb_team *team, int32_t thread, void *argument)
{
    under_way *job = argument;
    const kvb_load *load = job->load;
    int64_t pass = 0;
    kvb_team_meet(team, NULL);
    do {
        kvb_do_task(team, load->tasks[pass % load->count], thread);
        pass++;
        if (pass == load->ahead && thread == 0) {
            job->from = team->met;
            kvb_team_tell(team, &job->told);
        }
    } while (!team->ends);
    if (thread == 0) {
        job->to = team->met;
        job->passes = pass - load->ahead;
    }
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Return the code, with "load: " before its message. */
static int32_t of_load(int32_t code)
{
    char message[200];
    snprintf(message, sizeof message, "%s", kvb_message());
    return code ? kvb_fail(code, "load: %s", message) : KVB_OK;
}

static kvb_passes all_of(const kvb_load *load)
{
    return (kvb_passes){
        .tasks = load->tasks, .count = load->count, .passes = PASSES_MOST, .between = NULL};
}

static int32_t check_load(const kvb_team *team, const kvb_load *load)
{
    const kvb_passes job = all_of(load);
    TRY(kvb_run_check(load->team, &job));
    if (load->team == team)
        return kvb_fail(KVB_BAD_ARGUMENT, "team is also that of the run");
    TRY(kvb_check_range("ahead", load->ahead, 1, PASSES_MOST));
    if (!(load->pause >= 0.0 && load->pause <= 1000.0))
        return kvb_fail(KVB_BAD_ARGUMENT, "pause is %g; allowed is 0 to 1000", load->pause);
    return KVB_OK;
}

/* Check the tasks of the load. The caller holds the turn of its team. */
static int32_t check_load_ready(const kvb_load *load)
{
    const kvb_passes job = all_of(load);
    for (int32_t i = 0; i < load->count; i++)
        if (load->tasks[i] && load->tasks[i]->advance && !load->tasks[i]->cache->ring)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "tasks[%d] adds tokens in every pass; its cache must be a ring", i);
    return kvb_run_ready(load->team, &job);
}

static bool is_loaded(const kvb_task *task)
{
    bool loaded = task->loaded;
    for (int32_t i = 0; i < task->length; i++)
        loaded |= is_loaded(task->series[i]);
    return loaded;
}

/* Refuse a task that is in both the run and the load: two teams would write its state. All tasks of
 * the load are marked. */
static int32_t check_apart(const kvb_passes *job)
{
    for (int32_t i = 0; i < job->count; i++)
        if (is_loaded(job->tasks[i]))
            return kvb_fail(KVB_BAD_ARGUMENT, "tasks[%d] is also a task of the load", i);
    return job->between && is_loaded(job->between)
               ? kvb_fail(KVB_BAD_ARGUMENT, "between is also a task of the load")
               : KVB_OK;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void mark(kvb_task *task, bool loaded, double pause)
{
    task->loaded = loaded;
    task->pause = pause;
    for (int32_t i = 0; i < task->length; i++)
        mark(task->series[i], loaded, pause);
}

static void mark_all(const kvb_load *load, bool loaded, double pause)
{
    for (int32_t i = 0; i < load->count; i++)
        mark(load->tasks[i], loaded, pause);
}

/* Do the run and the load. All checks are done. */
static int32_t run_beside(kvb_team *team, kvb_passes *job, kvb_run_times *times, kvb_load *load)
{
    under_way state = {.load = load};
    atomic_store(&load->team->ending, false);
    kvb_team_begin(load->team, do_load, &state);
    kvb_team_await(load->team, &state.told);
    int32_t code = kvb_run_passes(team, job, times);
    atomic_store(&load->team->ending, true);
    kvb_team_end(load->team);
    load->passes = state.passes;
    load->seconds = (double)(state.to - state.from) * 1e-9;
    return code;
}

/* Check both sides, then run them. The caller holds the turns of both teams. */
static int32_t check_and_run(kvb_team *team, kvb_passes *job, kvb_run_times *times, kvb_load *load)
{
    TRY(kvb_run_ready(team, job));
    TRY(of_load(check_load_ready(load)));
    mark_all(load, true, load->pause);
    int32_t code = check_apart(job);
    code = code ? code : run_beside(team, job, times, load);
    mark_all(load, false, 0.0);
    const kvb_passes passes = all_of(load);
    return code ? code : of_load(kvb_run_faults(&passes));
}

int32_t kvb_run_beside(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                       kvb_task *between, kvb_run_times *times, kvb_load *load)
{
    TRY(kvb_check_given("times", times));
    kvb_passes job = {tasks, count, passes, between, times->pass_seconds, 0};
    TRY(kvb_run_check(team, &job));
    TRY(kvb_check_given("load", load));
    TRY(of_load(check_load(team, load)));
    /* always in the same order, so that two callers with these teams cannot deadlock */
    kvb_team *first = team < load->team ? team : load->team,
             *second = team < load->team ? load->team : team;
    pthread_mutex_lock(&first->turn);
    pthread_mutex_lock(&second->turn);
    int32_t code = check_and_run(team, &job, times, load);
    pthread_mutex_unlock(&second->turn);
    pthread_mutex_unlock(&first->turn);
    return code;
}
