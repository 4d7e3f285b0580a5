/* Persistent threads. They sleep between jobs, and spin only inside a job. */
#define _GNU_SOURCE 1
#include "run/team.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* more CPUs than any Linux kernel supports */
enum { CPU_SETS = 8, CPU_LIMIT = CPU_SETS * CPU_SETSIZE };
enum { BIG_SCRATCH = 2 << 20 }; /* from this size on, huge pages are worth it */

static void *live(void *argument)
{
    kvb_member *me = argument;
    kvb_team *team = me->team;
    int64_t seen = 0;
    /* the default rounding, whatever the thread that opens the team uses */
    fesetenv(FE_DFL_ENV);
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (team->jobs == seen && !team->closing)
            pthread_cond_wait(&team->wake, &team->lock);
        if (team->closing)
            break;
        seen = team->jobs;
        pthread_mutex_unlock(&team->lock);
        team->job(team, me->index, team->argument);
        pthread_mutex_lock(&team->lock);
        if (--team->busy == 0)
            pthread_cond_signal(&team->slept);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

void kvb_team_begin(kvb_team *team, kvb_job job, void *argument)
{
    pthread_mutex_lock(&team->lock);
    team->job = job;
    team->argument = argument;
    team->busy = team->threads;
    team->jobs++;
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
}

void kvb_team_end(kvb_team *team)
{
    pthread_mutex_lock(&team->lock);
    while (team->busy > 0)
        pthread_cond_wait(&team->slept, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void kvb_team_do(kvb_team *team, kvb_job job, void *argument)
{
    kvb_team_begin(team, job, argument);
    kvb_team_end(team);
}

void kvb_team_tell(kvb_team *team, bool *told)
{
    pthread_mutex_lock(&team->lock);
    *told = true;
    pthread_cond_signal(&team->slept);
    pthread_mutex_unlock(&team->lock);
}

void kvb_team_await(kvb_team *team, const bool *told)
{
    pthread_mutex_lock(&team->lock);
    while (!*told)
        pthread_cond_wait(&team->slept, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void touch(kvb_team *team, int32_t thread, void *argument)
{
    (void)argument;
    memset(team->members[thread].scratch.base, 0, (size_t)team->members[thread].scratch.bytes);
}

int32_t kvb_team_scratch(kvb_team *team, int64_t bytes)
{
    bool grown = false;
    int32_t code = KVB_OK, pages = bytes < BIG_SCRATCH ? PAGES_BASE : PAGES_THP;
    for (int32_t i = 0; !code && i < team->threads; i++) {
        kvb_arena *scratch = &team->members[i].scratch, larger;
        if (bytes <= scratch->bytes)
            continue;
        code = kvb_arena_open(bytes, pages, 1, &larger);
        if (code == KVB_UNSUPPORTED)
            code = kvb_arena_open(bytes, PAGES_BASE, 1, &larger);
        if (code)
            break;
        kvb_arena_close(scratch);
        *scratch = larger;
        grown = true;
    }
    if (grown) /* touch what was mapped, even if memory for another thread is lacking */
        kvb_team_do(team, touch, NULL);
    return code;
}

/* Return the CPU time that this process may use, in CPUs: the least quota of its control group and
 * of those above it. */
static double quota(void)
{
    char line[4000], group[sizeof line] = "", path[sizeof line + 32], *end;
    double least = INFINITY, share, period;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "0::%3999[^\n]", group);
    if (file)
        fclose(file);
    do {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        file = fopen(path, "re");
        if (file && fscanf(file, "%lf %lf", &share, &period) == 2)
            least = fmin(least, share / period);
        if (file)
            fclose(file);
        end = strrchr(group, '/');
        if (end)
            *end = '\0';
    } while (end);
    return least;
}

/* Check that every CPU asked for may be used. *crowded: there are more threads than CPUs, or than
 * the quota of CPU time. */
static int32_t check_cpus(const int32_t *cpus, int32_t threads, bool *crowded)
{
    cpu_set_t allowed[CPU_SETS], taken[CPU_SETS];
    memset(allowed, 0, sizeof allowed);
    memset(taken, 0, sizeof taken);
    if (sched_getaffinity(0, sizeof allowed, allowed))
        return kvb_fail(KVB_SYSTEM, "threads: cannot read the CPUs allowed: %s", strerror(errno));
    *crowded = threads > CPU_COUNT_S(sizeof allowed, allowed) || threads > quota();
    for (int32_t i = 0; cpus && i < threads; i++) {
        if (cpus[i] < 0 || cpus[i] >= CPU_LIMIT ||
            !CPU_ISSET_S((size_t)cpus[i], sizeof allowed, allowed))
            return kvb_fail(KVB_BAD_ARGUMENT, "cpus[%d]: this process may not use CPU %d", i,
                            cpus[i]);
        *crowded |= CPU_ISSET_S((size_t)cpus[i], sizeof taken, taken) != 0;
        CPU_SET_S((size_t)cpus[i], sizeof taken, taken);
    }
    return KVB_OK;
}

/* Start a member. It blocks all signals but those of a fault: the process's own threads get them.
 */
static int start(kvb_member *member)
{
    sigset_t most, before;
    sigfillset(&most);
    sigdelset(&most, SIGSEGV);
    sigdelset(&most, SIGBUS);
    sigdelset(&most, SIGILL);
    sigdelset(&most, SIGFPE);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    int error = pthread_create(&member->thread, NULL, live, member);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Pin a member to its CPU (negative: any) before it has work. musl cannot start a thread on a CPU.
 */
static int pin(kvb_member *member, int32_t cpu)
{
    if (cpu < 0)
        return 0;
    cpu_set_t set[CPU_SETS];
    memset(set, 0, sizeof set);
    CPU_SET_S((size_t)cpu, sizeof set, set);
    return pthread_setaffinity_np(member->thread, sizeof set, set);
}

/* End the first `started` threads and free everything. After a fork, the child has no threads to
 * end. */
static void release(kvb_team *team, int32_t started)
{
    if (team->process == getpid()) {
        pthread_mutex_lock(&team->lock);
        team->closing = true;
        pthread_cond_broadcast(&team->wake);
        pthread_mutex_unlock(&team->lock);
        for (int32_t i = 0; i < started; i++)
            pthread_join(team->members[i].thread, NULL);
        pthread_cond_destroy(&team->slept);
        pthread_cond_destroy(&team->wake);
        pthread_cond_destroy(&team->met_again);
        pthread_mutex_destroy(&team->lock);
        pthread_mutex_destroy(&team->turn);
    }
    for (int32_t i = 0; i < team->threads; i++)
        kvb_arena_close(&team->members[i].scratch);
    free(team);
}

static kvb_team *new_team(int32_t threads, bool crowded)
{
    size_t bytes = sizeof(kvb_team) + (size_t)threads * sizeof(kvb_member);
    kvb_team *team = aligned_alloc(APART, (size_t)round_up((int64_t)bytes, APART));
    if (!team)
        return NULL;
    memset(team, 0, bytes);
    pthread_mutex_init(&team->turn, NULL);
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->met_again, NULL);
    pthread_cond_init(&team->slept, NULL);
    team->threads = threads;
    team->crowded = crowded;
    team->process = getpid();
    for (int32_t i = 0; i < threads; i++) {
        team->members[i].team = team;
        team->members[i].index = i;
    }
    return team;
}

static int32_t fail_start(int32_t thread, int32_t cpu, int error)
{
    if (cpu < 0)
        return kvb_fail(KVB_SYSTEM, "threads: cannot start thread %d: %s", thread, strerror(error));
    return kvb_fail(KVB_SYSTEM, "cpus[%d]: cannot start a thread on CPU %d: %s", thread, cpu,
                    strerror(error));
}

int32_t kvb_team_open(const int32_t *cpus, int32_t threads, kvb_team **team)
{
    bool crowded;
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_given("team", team));
    TRY(check_cpus(cpus, threads, &crowded));
    kvb_team *made = new_team(threads, crowded);
    if (!made)
        return kvb_fail(KVB_NO_MEMORY, "threads: no memory for a team of %d", threads);
    for (int32_t i = 0; i < threads; i++) {
        int32_t cpu = cpus ? cpus[i] : -1;
        int error = start(&made->members[i]);
        int32_t started = i + !error;
        if (!error)
            error = pin(&made->members[i], cpu);
        if (error) {
            release(made, started);
            return fail_start(i, cpu, error);
        }
    }
    *team = made;
    return KVB_OK;
}

void kvb_team_close(kvb_team *team)
{
    if (team)
        release(team, team->threads);
}
