/* A run while another team works. */
#include "run/run.h"

/* tokens that no cache has room for may be added, but for a ring, which begins again */
enum { PASSES_MOST = INT32_MAX / 2 };

typedef struct under_way {
    const kvb_load *load;
    bool told; /* the passes ahead are done */
    int64_t from, to, passes;
} under_way;

/* Passes until somebody wants them to end. Thread 0 keeps the times. */
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

static kvb_passes passes_of(const kvb_load *load)
{
    return (kvb_passes){
        .tasks = load->tasks, .count = load->count, .passes = PASSES_MOST, .between = NULL};
}

static int32_t check_load(const kvb_team *team, const kvb_load *load)
{
    TRY(kvb_check_given("load", load));
    const kvb_passes job = passes_of(load);
    TRY(kvb_run_check(load->team, &job));
    if (load->team == team)
        return kvb_fail(KVB_BAD_ARGUMENT, "load: its team is that of the run");
    TRY(kvb_check_range("ahead", load->ahead, 1, PASSES_MOST));
    if (!(load->pause >= 0.0 && load->pause <= 1000.0))
        return kvb_fail(KVB_BAD_ARGUMENT, "pause is %g, not 0 to 1000", load->pause);
    return KVB_OK;
}

static void set_pause(kvb_task *task, double pause)
{
    task->pause = pause;
    for (int32_t i = 0; i < task->length; i++)
        set_pause(task->series[i], pause);
}

static void set_pauses(const kvb_load *load, double pause)
{
    for (int32_t i = 0; i < load->count; i++)
        set_pause(load->tasks[i], pause);
}

/* With the turns of both teams. */
static int32_t run_beside(kvb_team *team, kvb_passes *job, kvb_run_times *times, kvb_load *load)
{
    const kvb_passes passes = passes_of(load);
    under_way state = {.load = load};
    TRY(kvb_run_ready(load->team, &passes));
    set_pauses(load, load->pause);
    atomic_store(&load->team->ending, false);
    kvb_team_begin(load->team, do_load, &state);
    kvb_team_await(load->team, &state.told);
    int32_t code = kvb_run_in_turn(team, job, times);
    atomic_store(&load->team->ending, true);
    kvb_team_end(load->team);
    set_pauses(load, 0.0);
    load->passes = state.passes;
    load->seconds = (double)(state.to - state.from) * 1e-9;
    return code ? code : kvb_run_faults(&passes);
}

int32_t kvb_run_beside(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                       kvb_task *between, kvb_run_times *times, kvb_load *load)
{
    TRY(kvb_check_given("times", times));
    kvb_passes job = {tasks, count, passes, between, times->pass_seconds, 0};
    TRY(kvb_run_check(team, &job));
    TRY(check_load(team, load));
    /* in one order, so that two callers never wait for each other */
    kvb_team *first = team < load->team ? team : load->team,
             *second = team < load->team ? load->team : team;
    pthread_mutex_lock(&first->turn);
    pthread_mutex_lock(&second->turn);
    int32_t code = run_beside(team, &job, times, load);
    pthread_mutex_unlock(&second->turn);
    pthread_mutex_unlock(&first->turn);
    return code;
}
