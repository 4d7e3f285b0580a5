/* What a run beside a load refuses. Then nothing has run, and no output is set. */
#include <math.h>
#include <stdio.h>

#include "beside.h"

static void wrong(int32_t code, const char *words)
{
    expect(code == KVB_BAD_ARGUMENT && !strcmp(kvb_message(), words), "code %d, message \"%s\"",
           code, code ? kvb_message() : "");
}

/* A load with wrong fields. */
static void check_fields(kvb_task *mine, const kvb_load *good)
{
    kvb_load load = *good;
    wrong(beside(&mine, 1, NULL, NULL), "load is null");
    load.team = NULL;
    wrong(beside(&mine, 1, NULL, &load), "load: team is null");
    load.team = one;
    wrong(beside(&mine, 1, NULL, &load), "load: team is also that of the run");
    load = *good, load.tasks = NULL;
    wrong(beside(&mine, 1, NULL, &load), "load: tasks is null");
    for (int32_t count = -1; count < 1; count++) {
        char words[80];
        snprintf(words, sizeof words, "load: count is %d; allowed is 1 to 2147483647", count);
        load = *good, load.count = count;
        wrong(beside(&mine, 1, NULL, &load), words);
    }
    load = *good, load.ahead = 0;
    wrong(beside(&mine, 1, NULL, &load), "load: ahead is 0; allowed is 1 to 1073741823");
    load.ahead = INT32_MAX;
    wrong(beside(&mine, 1, NULL, &load), "load: ahead is 2147483647; allowed is 1 to 1073741823");
    const double pauses[] = {-0.001, 1000.5, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 5; i++) {
        load = *good, load.pause = pauses[i];
        refused(beside(&mine, 1, NULL, &load), "load: pause is ", "a pause");
    }
}

/* Tasks that a load cannot have, and tasks of a run that cannot have a load beside them. */
static void check_tasks(kvb_task *mine, kvb_task *full, kvb_task *too_long, kvb_load *good)
{
    kvb_load load = *good;
    kvb_task *const lacks[] = {good->tasks[0], NULL}, *const other[] = {good->tasks[0], mine},
                    *const adds[] = {good->tasks[0], full};
    load.count = 2, load.tasks = lacks;
    wrong(beside(&mine, 1, NULL, &load), "load: tasks[1] is null");
    load.tasks = other;
    wrong(beside(&mine, 1, NULL, &load),
          "load: tasks[1] is planned for 1 threads, but the team has 2");
    load.tasks = adds;
    wrong(beside(&mine, 1, NULL, &load),
          "load: tasks[1] adds tokens in every pass; its cache must be a ring");
    refused(beside(&too_long, 1, NULL, good), "tokens: sequence 0", "a run that does not fit");
    wrong(beside(good->tasks, 1, NULL, good),
          "tasks[0] is planned for 2 threads, but the team has 1");
}

static kvb_task *read_of(void)
{
    static _Alignas(64) uint8_t lines[640];
    kvb_probe args = {
        .op = word_of("op", "read"), .isa = tiers[0], .a = lines, .bytes = sizeof lines};
    kvb_task *task = NULL;
    expect(!kvb_task_probe(&args, 1, &task), "read: %s", kvb_message());
    return task;
}

/* A task that is in both, by itself or in a series: two teams would write one state. */
static void check_shared(kvb_task *mine)
{
    kvb_team *other;
    expect(!kvb_team_open(NULL, 1, &other), "team: %s", kvb_message());
    kvb_task *read = read_of(), *series = twice(mine, 1), *const both[] = {series, mine};
    kvb_load load = {.team = other, .count = 1, .ahead = 1};
    for (int i = 0; i < 4; i++) {
        load.tasks = &both[i / 2];
        wrong(beside(&both[i % 2], 1, NULL, &load), "tasks[0] is also a task of the load");
    }
    wrong(beside(&read, 1, mine, &load), "between is also a task of the load");
    expect(!beside(&read, 1, NULL, &load), "another task than the load's: %s", kvb_message());
    kvb_task_free(read);
    kvb_task_free(series);
    kvb_team_close(other);
}

void check_loads(void)
{
    rig r, small;
    if (!open_rig(&r, "head") || !open_rig(&small, "head"))
        return;
    float out[2][2 * DIM], before[2][2 * DIM];
    r.lengths[0] = 5, small.lengths[0] = CAPACITY - 2;
    kvb_task *mine = decode_of(&r.cache, out[0], 1, NULL),
             *load_task = decode_of(&r.cache, out[1], 2, NULL), *adds = NULL;
    kvb_store put = {.cache = &small.cache,
                     .k = source,
                     .v = source,
                     .tokens = 1,
                     .isa = tiers[0],
                     .advance = 1};
    expect(!kvb_task_append(&put, 2, &adds), "append: %s", kvb_message());
    kvb_task *too_long = store_of(&small.cache, 1, 1);
    kvb_load good = {
        .team = two, .tasks = &load_task, .count = 1, .ahead = 1, .passes = 7, .seconds = 8.0};
    memset(out, 0x5a, sizeof out);
    memcpy(before, out, sizeof out);
    check_fields(mine, &good);
    check_tasks(mine, adds, too_long, &good);
    expect(good.passes == 7 && good.seconds == 8.0, "a refused load has results");
    expect(small.lengths[0] == CAPACITY - 2, "a refused run stored tokens");
    expect(!memcmp(out, before, sizeof out), "a refused run, or its load, has answers");
    check_shared(mine);
    kvb_task_free(mine);
    kvb_task_free(load_task);
    kvb_task_free(adds);
    kvb_task_free(too_long);
    rig_close(&r);
    rig_close(&small);
}
