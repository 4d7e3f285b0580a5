/* The timed loop: a team does passes of tasks. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cache/cache.h"
#include "run/run.h"

static void do_passes(kvb_team *team, int32_t thread, kvb_passes *job, kvb_member *me)
{
    kvb_team_meet(team, NULL);
    int64_t start = team->met, sum = 0;
    for (int64_t pass = 0; pass < job->passes; pass++) {
        kvb_task *task = job->tasks[pass % job->count];
        if (job->between) {
            kvb_do_pass(team, job->between, thread);
            start = team->met;
        }
        me->nanoseconds += kvb_do_task(team, task, thread);
        int64_t end = team->met;
        sum += end - start;
        if (thread == 0 && job->pass_seconds)
            job->pass_seconds[pass] = (double)(end - start) * 1e-9;
        start = end;
    }
    if (thread == 0)
        job->nanoseconds = sum;
}

static void do_run(kvb_team *team, int32_t thread, void *argument)
{
    kvb_member *me = &team->members[thread];
    struct rusage before, after;
    me->nanoseconds = 0;
    memset(me->ticks, 0, sizeof me->ticks);
    getrusage(RUSAGE_THREAD, &before);
    do_passes(team, thread, argument, me);
    getrusage(RUSAGE_THREAD, &after);
    me->switches = after.ru_nivcsw - before.ru_nivcsw;
    me->faults = after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt;
}

static void report(const kvb_team *team, const kvb_passes *job, kvb_run_times *times)
{
    double ticks[3] = {0, 0, 0};
    times->seconds = (double)job->nanoseconds * 1e-9;
    times->switches = 0;
    times->faults = 0;
    for (int32_t i = 0; i < team->threads; i++) {
        const kvb_member *member = &team->members[i];
        times->switches += member->switches;
        times->faults += member->faults;
        for (int j = 0; j < 3; j++)
            ticks[j] += member->ticks[j];
        if (times->thread_seconds)
            times->thread_seconds[i] = (double)member->nanoseconds * 1e-9;
    }
    double all = ticks[0] + ticks[1] + ticks[2];
    for (int j = 0; j < 3; j++)
        times->stage_share[j] = all > 0 ? ticks[j] / all : 0;
}

static int32_t check_task(const kvb_team *team, const kvb_task *task, const char *name)
{
    TRY(kvb_check_given(name, task));
    if (task->threads != team->threads)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is planned for %d threads, but the team has %d", name,
                        task->threads, team->threads);
    return KVB_OK;
}

static int32_t check_tasks(const kvb_team *team, const kvb_passes *job)
{
    bool series = false, stages = false;
    for (int32_t i = 0; i < job->count; i++) {
        char name[24];
        snprintf(name, sizeof name, "tasks[%d]", i);
        TRY(check_task(team, job->tasks[i], name));
        series |= job->tasks[i]->series != NULL;
        stages |= job->tasks[i]->stages;
    }
    if (series && stages)
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "tasks: a series and a task that counts stages cannot run together");
    if (!job->between)
        return KVB_OK;
    TRY(check_task(team, job->between, "between"));
    return job->between->series
               ? kvb_fail(KVB_BAD_ARGUMENT, "between is a series; it must be a single task")
               : KVB_OK;
}

/* Return how many of the first `passes` passes are of tasks[i]. */
static int64_t passes_of(const kvb_passes *job, int32_t i, int64_t passes)
{
    return i < passes ? (passes - i - 1) / job->count + 1 : 0;
}

/* Return the tokens that `passes` passes of a task add to each sequence of the cache with
 * `lengths`. / */
static __int128 added(const kvb_task *task, int64_t passes, const int64_t *lengths)
{
    return task->cache && task->cache->lengths == lengths ? (__int128)task->advance * passes : 0;
}

/* Return the tokens that the first `passes` passes and `betweens` passes of `between` add to it. */
static int64_t added_by_all(const kvb_passes *job, int64_t passes, int64_t betweens,
                            const int64_t *lengths)
{
    __int128 sum = job->between ? added(job->between, betweens, lengths) : 0;
    for (int32_t i = 0; i < job->count; i++)
        sum += added(job->tasks[i], passes_of(job, i, passes), lengths);
    return sum < INT64_MAX / 2 ? (int64_t)sum : INT64_MAX / 2;
}

/* Return an upper bound of the tokens that all passes add to any cache. It is a quick check: most
 * runs add none, and may have thousands of tasks, each with its own cache. */
static int64_t added_at_most(const kvb_passes *job)
{
    __int128 sum = job->between ? (__int128)job->between->advance * job->passes : 0;
    for (int32_t i = 0; i < job->count; i++)
        sum += (__int128)job->tasks[i]->advance * passes_of(job, i, job->passes);
    return sum < INT64_MAX / 2 ? (int64_t)sum : INT64_MAX / 2;
}

/* Check that a task can do its last pass, after `passes` passes and `betweens` of `between`. Tasks
 * of one cache share its lengths, so the tokens that all of them have added count. If the task
 * could go on after `most` tokens, an upper bound, the exact number is not needed. */
static int32_t check_ready(const kvb_passes *job, const kvb_task *task, int64_t most,
                           int64_t passes, int64_t betweens)
{
    if (task->cache && !kvb_same_rows(task->cache, &task->shape))
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "cache was planned for another shape after the task was planned");
    for (int32_t i = 0; i < task->length; i++)
        TRY(check_ready(job, task->series[i], most, passes, betweens));
    if (!task->ready || !task->ready(task, most))
        return KVB_OK;
    return task->ready(
        task, most && task->cache ? added_by_all(job, passes, betweens, task->cache->lengths) : 0);
}

/* Check all tasks. The caller must have the team's turn: another caller's run may change lengths
 * and tables before that. */
static int32_t check_run(const kvb_team *team, const kvb_passes *job)
{
    TRY(check_tasks(team, job));
    const int64_t most = added_at_most(job);
    for (int32_t i = 0; i < job->count && i < job->passes; i++) {
        int64_t last = i + (passes_of(job, i, job->passes) - 1) * job->count;
        TRY(check_ready(job, job->tasks[i], most, last, last + 1));
    }
    return job->between ? check_ready(job, job->between, most, job->passes - 1, job->passes - 1)
                        : KVB_OK;
}

static int64_t scratch_needed(const kvb_passes *job)
{
    int64_t bytes = job->between ? at_least(LINE, job->between->scratch_bytes) : LINE;
    for (int32_t i = 0; i < job->count; i++)
        bytes = at_least(bytes, job->tasks[i]->scratch_bytes);
    return bytes;
}

static int32_t check_fault(const kvb_task *task)
{
    for (int32_t i = 0; i < task->length; i++)
        TRY(check_fault(task->series[i]));
    return task->fault ? kvb_fail(KVB_FOREIGN, "the plug-in %s", task->fault) : KVB_OK;
}

int32_t kvb_run_faults(const kvb_passes *job)
{
    for (int32_t i = 0; i < job->count; i++)
        TRY(check_fault(job->tasks[i]));
    return KVB_OK;
}

int32_t kvb_run_check(const kvb_team *team, const kvb_passes *job)
{
    TRY(kvb_check_given("team", team));
    if (team->process != getpid())
        return kvb_fail(KVB_BAD_ARGUMENT,
                        "team was opened before a fork: its threads are in the other process");
    TRY(kvb_check_given("tasks", job->tasks));
    TRY(kvb_check_range("count", job->count, 1, INT32_MAX));
    return kvb_check_range("passes", job->passes, 1, INT64_MAX);
}

int32_t kvb_run_ready(kvb_team *team, const kvb_passes *job)
{
    TRY(check_run(team, job));
    return kvb_team_scratch(team, scratch_needed(job));
}

int32_t kvb_run_passes(kvb_team *team, kvb_passes *job, kvb_run_times *times)
{
    if (job->pass_seconds) /* so that the loop touches no new page */
        memset(job->pass_seconds, 0, (size_t)job->passes * sizeof *job->pass_seconds);
    kvb_team_do(team, do_run, job);
    report(team, job, times);
    return kvb_run_faults(job);
}

int32_t kvb_run(kvb_team *team, kvb_task *const *tasks, int32_t count, int64_t passes,
                kvb_task *between, kvb_run_times *times)
{
    TRY(kvb_check_given("times", times));
    kvb_passes job = {tasks, count, passes, between, times->pass_seconds, 0};
    TRY(kvb_run_check(team, &job));
    pthread_mutex_lock(&team->turn);
    int32_t code = kvb_run_ready(team, &job);
    code = code ? code : kvb_run_passes(team, &job, times);
    pthread_mutex_unlock(&team->turn);
    return code;
}
