/* Runs of several tasks, and lengths and tables that change between runs: a run that cannot do all
 * its passes is refused before the first one. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runs.h"

/* Stores into one cache share its lengths: each counts the tokens of all. */
static void check_stores_of_a_run(const char *layout)
{
    rig r;
    if (!open_rig(&r, layout))
        return;
    kvb_cache twin = r.cache; /* shares the lengths */
    kvb_task *one = store_of(&r.cache, 1, 1), *ten = store_of(&twin, 10, 1),
             *still = store_of(&r.cache, 10, 0);
    kvb_task *const ones[] = {one, one}, *const both[] = {one, ten};
    kvb_task *const first[] = {still, ten}, *const last[] = {ten, still};
    refused(run(ones, 2, CAPACITY + 1, NULL), "tokens", "a task twice");
    refused(run(both, 2, 4, NULL), "tokens", "two tasks");
    refused(run(&one, 1, CAPACITY / 2 + 1, one), "tokens", "a task between its own passes");
    refused(run(&one, 1, 2, ten), "tokens", "another task between");
    refused(run(last, 2, 4, NULL), "tokens", "a task behind others that advance");
    refused(run(ones, 2, INT64_MAX, one), "tokens", "more tokens than can be counted");
    expect(r.lengths[0] == 0, "refused runs stored %ld tokens", (long)r.lengths[0]);
    if (r.table) {
        r.table[1] = 1 << 20;
        refused(run(ones, 2, CAPACITY, NULL), "table", "a task twice, over a table");
        refused(run(last, 2, 2, NULL), "table", "a task behind one that advances, over a table");
        expect(!run(ones, 2, CAPACITY / 2, NULL) && r.lengths[0] == CAPACITY / 2,
               "a block full: %s", kvb_message());
        r.table[1] = 1;
        r.lengths[0] = 0;
    }
    expect(!run(first, 2, 4, NULL) && r.lengths[0] == CAPACITY,
           "a task in front of one that advances: %s", kvb_message());
    r.lengths[0] = CAPACITY - 1;
    expect(!run(both, 2, 1, NULL) && r.lengths[0] == CAPACITY, "a task that gets no pass: %s",
           kvb_message());
    kvb_task_free(one);
    kvb_task_free(ten);
    kvb_task_free(still);
    rig_close(&r);
}

/* A decode that is planned for fixed lengths is refused after stores that change them, in any
 * order. Before all stores it runs. */
static void check_decodes_of_a_run(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[DIM];
    kvb_decode args = {.cache = &r.cache, .q = source, .out = out, .q_heads = 1, .isa = tiers[0]};
    kvb_task *store = store_of(&r.cache, 1, 1), *tasks[3];
    r.lengths[0] = 1;
    expect(!kvb_task_decode(&args, 1, &tasks[0]) && !kvb_task_twin(&args, 1, &tasks[1]) &&
               !kvb_task_fill(&args, 1, 1, &tasks[2]),
           "tasks: %s", kvb_message());
    for (int i = 0; i < 3; i++) {
        kvb_task *const behind[] = {store, tasks[i]}, *const before[] = {tasks[i], store};
        refused(run(behind, 2, 2, NULL), "lengths", "a decode behind a store");
        refused(run(before, 2, 3, NULL), "lengths", "a decode's second pass behind a store");
        refused(run(&tasks[i], 1, 1, store), "lengths", "a store between");
        expect(r.lengths[0] == 1, "refused runs stored %ld tokens", (long)r.lengths[0] - 1);
        expect(!run(before, 2, 2, NULL) && r.lengths[0] == 2, "a decode in front of a store: %s",
               kvb_message());
        r.lengths[0] = 1;
        kvb_task_free(tasks[i]);
    }
    kvb_task_free(store);
    rig_close(&r);
}

/* Lengths and tables belong to the caller, and may change from run to run. */
static void check_unpack(void)
{
    rig r;
    if (!open_rig(&r, "paged"))
        return;
    float k[CAPACITY * DIM], v[CAPACITY * DIM];
    kvb_task *task = NULL;
    expect(!kvb_task_unpack(&r.cache, 0, CAPACITY, k, v, tiers[0], 1, &task), "unpack: %s",
           kvb_message());
    kvb_task *store = store_of(&r.cache, CAPACITY / 2, 1), *const twice[] = {store, store, task};
    r.table[1] = 1 << 20;
    r.lengths[0] = CAPACITY;
    refused(run(&task, 1, 1, NULL), "table", "unpack by another table");
    r.lengths[0] = CAPACITY / 2;
    expect(!run(&task, 1, 1, NULL), "unpack in front of a wrong entry: %s", kvb_message());
    r.table[1] = -1; /* stores skip it */
    r.lengths[0] = 0;
    expect(!run(twice, 3, 3, NULL) && r.lengths[0] == CAPACITY, "unpack behind stores: %s",
           kvb_message());
    r.lengths[0] = INT64_C(1) << 40;
    refused(run(&task, 1, 1, NULL), "lengths", "unpack of another length");
    kvb_task_free(task);
    kvb_task_free(store);
    rig_close(&r);
}

static sem_t begun, go_on;

/* A plug-in's kernel that reports that it runs, and then waits. */
static void wait_inside(const kvb_work *work)
{
    sem_post(&begun);
    sem_wait(&go_on);
    work->max[0] = work->sum[0] = 0.0f;
    memset(work->acc, 0, DIM * sizeof *work->acc);
}

static void *run_both(void *tasks) { return run(tasks, 2, 2, NULL) ? tasks : NULL; }

/* Let the kernel go on, after enough time for a check that does not wait for its turn. */
static void *let_go(void *none)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    sem_post(&go_on);
    return none;
}

/* A second caller is checked against the cache as the first caller's run leaves it. */
static void check_two_callers(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[DIM];
    kvb_decode args = {.cache = &r.cache,
                       .q = source,
                       .out = out,
                       .q_heads = 1,
                       .isa = tiers[0],
                       .run = wait_inside};
    r.lengths[0] = 1;
    kvb_task *tasks[2] = {NULL, store_of(&r.cache, CAPACITY - 1, 1)},
             *more = store_of(&r.cache, 1, 1);
    expect(!kvb_task_decode(&args, 1, &tasks[0]), "decode: %s", kvb_message());
    pthread_t first, other;
    void *failed;
    sem_init(&begun, 0, 0);
    sem_init(&go_on, 0, 0);
    pthread_create(&first, NULL, run_both, tasks);
    sem_wait(&begun);
    pthread_create(&other, NULL, let_go, NULL);
    refused(run(&more, 1, 1, NULL), "tokens", "a store behind another caller's");
    pthread_join(first, &failed);
    pthread_join(other, NULL);
    expect(!failed && r.lengths[0] == CAPACITY, "a decode and a store: %ld tokens",
           (long)r.lengths[0]);
    for (int i = 0; i < 2; i++)
        kvb_task_free(tasks[i]);
    kvb_task_free(more);
    rig_close(&r);
}

void check_runs(void)
{
    noise(source, CAPACITY * DIM, 31);
    check_stores_of_a_run("head");
    check_stores_of_a_run("paged");
    check_decodes_of_a_run();
    check_unpack();
    check_two_callers();
}
