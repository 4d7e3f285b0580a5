/* beside: two teams at once, for a tool that watches threads; and how often and how long a load
 * waits.
 *
 * The library is compiled with the clock_gettime() below. It gives each thread its own clock, which
 * advances by STEP whenever the thread reads it. So the time of a pass is the number of times that
 * its thread has read the clock, and the test knows that number. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kvbench.h"

enum { TOKENS = 700, DIM = 8, KV_HEADS = 3, BATCH = 2, Q_HEADS = 6, UNIT = 128 << 10 };
enum { BYTES = 3 * UNIT + 64 }; /* four units of a probe */
/* clock readings in a pass without a pause: begin and end of the work, meeting of the threads */
enum { PLAIN = 3 };

enum { STEP = 10 }; /* nanoseconds */

static _Thread_local int64_t now;
static int failed;

int clock_gettime(clockid_t id, struct timespec *to)
{
    (void)id;
    now += STEP;
    to->tv_sec = now / 1000000000;
    to->tv_nsec = now % 1000000000;
    return 0;
}

static void must(int32_t code)
{
    if (code) {
        fprintf(stderr, "beside: %s\n", kvb_message());
        exit(2);
    }
}

static void equals(const char *what, double found, double right)
{
    if (found != right) {
        fprintf(stderr, "beside: %s: %.17g, not %.17g\n", what, found, right);
        failed++;
    }
}

static int32_t word(const char *list, const char *name)
{
    int32_t i = 0;
    while (strcmp(kvb_word(list, i), name))
        i++;
    return i;
}

/* ---- what runs ------------------------------------------------------------------------------- */

static kvb_team *small, *large; /* one thread, two threads */
static kvb_cache cache;
static int64_t lengths[BATCH] = {TOKENS, TOKENS / 2};
static uint8_t *buffer; /* 3 * BYTES bytes */

static void open_all(void)
{
    cache = (kvb_cache){.batch = BATCH,
                        .kv_heads = KV_HEADS,
                        .head_dim = DIM,
                        .capacity = TOKENS,
                        .lengths = lengths};
    must(kvb_cache_plan(&cache));
    void *memory = aligned_alloc(64, (size_t)cache.bytes);
    buffer = aligned_alloc(64, 3 * BYTES);
    if (!memory || !buffer)
        exit(2);
    memset(memory, 0, (size_t)cache.bytes);
    memset(buffer, 0, 3 * BYTES);
    must(kvb_cache_bind(&cache, memory));
    must(kvb_team_open(NULL, 1, &small));
    must(kvb_team_open(NULL, 2, &large));
}

static kvb_task *decode(const char *variant, int32_t threads, float *out,
                        void (*kernel)(const kvb_work *), bool twin)
{
    static const float q[BATCH * Q_HEADS * DIM] = {1.0f};
    kvb_decode args = {.cache = &cache,
                       .q = q,
                       .out = out,
                       .q_heads = Q_HEADS,
                       .variant = word("variant", variant),
                       .run = kernel};
    kvb_task *task;
    must((twin ? kvb_task_twin : kvb_task_decode)(&args, threads, &task));
    return task;
}

static kvb_task *probe(const char *op, int64_t steps, int64_t piece, int32_t threads)
{
    kvb_probe args = {.op = word("op", op),
                      .a = buffer,
                      .b = buffer + BYTES,
                      .c = buffer + 2 * BYTES,
                      .bytes = BYTES,
                      .steps = steps,
                      .piece = piece};
    kvb_task *task;
    must(kvb_task_probe(&args, threads, &task));
    return task;
}

/* Make a chase through a random cycle, in its own memory. */
static kvb_task *chase(void)
{
    static _Alignas(64) uint8_t lines[64 * 64];
    kvb_task *task;
    must(kvb_chain(lines, sizeof lines, 1));
    kvb_probe args = {.op = word("op", "latency"), .a = lines, .bytes = sizeof lines, .steps = 99};
    must(kvb_task_probe(&args, 1, &task));
    return task;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Return the clock readings in a pass of a load on one thread. */
static double pass_of(kvb_task *task, double pause)
{
    kvb_task *other = probe("clock", 1, 0, 2);
    kvb_run_times times = {0};
    kvb_load load = {.team = small, .tasks = &task, .count = 1, .ahead = 2, .pause = pause};
    must(kvb_run_beside(large, &other, 1, 3, NULL, &times, &load));
    kvb_task_free(other);
    return round(load.seconds * 1e9) / STEP / (double)load.passes;
}

/* Return the clock readings in a pass of a run without a load. */
static double alone(kvb_task *task)
{
    kvb_run_times times = {0};
    must(kvb_run(small, &task, 1, 4, NULL, &times));
    return round(times.seconds * 1e9) / STEP / 4;
}

/* Check a task of `units` units that do not read the clock. There is one reading before the first
 * unit, one after each, and then as many as last `pause` times as long as the unit. */
static void check_units(const char *what, kvb_task *task, int64_t units)
{
    static const double pauses[] = {0.5, 2.5};
    equals(what, pass_of(task, 0), PLAIN);
    for (int i = 0; i < 2; i++) {
        const double each = 1 + ceil(pauses[i]);
        equals(what, pass_of(task, pauses[i]), PLAIN + 1 + (double)units * each);
        equals(what, alone(task), PLAIN);
    }
    kvb_task_free(task);
}

/* A unit of a plug-in that lasts a hundred readings. */
static void slow_unit(const kvb_work *work)
{
    for (int64_t i = 0; i < work->heads * work->group; i++)
        work->max[i] = work->sum[i] = 0.0f;
    memset(work->acc, 0, (size_t)(work->heads * work->group * DIM) * sizeof *work->acc);
    now += 100 * STEP;
}

/* A wait is `pause` times as long as its unit, with the reading after the unit. */
static void check_length(float *out)
{
    kvb_task *task = decode("flash", 1, out, slow_unit, false);
    const double units = BATCH * KV_HEADS;
    equals("slow units", pass_of(task, 0), PLAIN + units * 100);
    equals("slow units, and waits", pass_of(task, 2.5), PLAIN + 1 + units * (101 + 253));
    kvb_task_free(task);
}

/* A task without units of its own waits once, after its work, which ends with two readings. */
static void check_whole(const char *what, kvb_task *task)
{
    equals(what, pass_of(task, 0), PLAIN);
    equals(what, pass_of(task, 1), PLAIN + 1 + 2);
    equals(what, pass_of(task, 4), PLAIN + 1 + 8);
    equals(what, alone(task), PLAIN);
    kvb_task_free(task);
}

/* All parts of a series wait, but nothing waits after the series. */
static void check_series(float *out)
{
    const double units = BATCH * KV_HEADS;
    kvb_task *task = decode("flash", 1, out, NULL, false), *whole = chase(),
             *series, *const parts[] = {task, whole};
    const int32_t kinds[] = {0, 1};
    must(kvb_task_series(parts, kinds, 2, 1, &series));
    equals("a series", pass_of(series, 0), 2 * PLAIN);
    equals("a series with waits", pass_of(series, 1), 2 * PLAIN + 1 + units * 2 + 3);
    equals("a part of a series", alone(task), PLAIN);
    kvb_task_free(series);
    kvb_task_free(task);
    kvb_task_free(whole);
}

/* After a run that was refused late, the tasks of the load are not marked any more. */
static void check_refused(float *out)
{
    kvb_task *task = decode("flash", 1, out, NULL, false);
    kvb_team *other;
    kvb_run_times times = {0};
    must(kvb_team_open(NULL, 1, &other));
    kvb_load load = {.team = small, .tasks = &task, .count = 1, .ahead = 1, .pause = 9};
    if (!kvb_run_beside(other, &task, 1, 1, NULL, &times, &load))
        exit(2);
    equals("after a refused run", alone(task), PLAIN);
    kvb_team_close(other);
    kvb_task_free(task);
}

static void check_waits(void)
{
    static float out[BATCH * Q_HEADS * DIM];
    const float *zeros = (float *)(void *)buffer;
    kvb_store put = {.cache = &cache, .k = zeros, .v = zeros, .tokens = 1};
    kvb_task *store;
    lengths[0] -= 1;
    must(kvb_task_append(&put, 1, &store));
    check_whole("an append", store);
    lengths[0] += 1;
    check_whole("a chase", chase());
    check_units("flash", decode("flash", 1, out, NULL, false), BATCH * KV_HEADS);
    check_units("twopass", decode("twopass", 1, out, NULL, false), BATCH * KV_HEADS);
    check_units("perhead", decode("perhead", 1, out, NULL, false), BATCH * Q_HEADS);
    check_units("twin", decode("flash", 1, out, NULL, true), BATCH * KV_HEADS);
    check_units("read", probe("read", 0, 0, 1), 4);
    check_units("two sweeps", probe("read", 2, 0, 1), 8);
    check_units("a piece", probe("read", 0, BYTES, 1), 4);
    check_units("copy", probe("copy", 0, 0, 1), 4);
    check_units("triad", probe("triad", 0, 0, 1), 4);
    check_length(out);
    check_series(out);
    check_refused(out);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* A caller with a run beside a load. */
typedef struct caller {
    kvb_team *team;
    kvb_task *own;
    kvb_load load;
} caller;

static void *call(void *argument)
{
    caller *c = argument;
    kvb_run_times times = {0};
    for (int i = 0; i < 8; i++)
        must(kvb_run_beside(c->team, &c->own, 1, 20, NULL, &times, &c->load));
    return NULL;
}

/* A chase beside a cut decode and a read, both with waits. Then, at the same time, a decode of each
 * team beside a chase of the other: the order of the teams must not matter. */
static void check_threads(void)
{
    static float out[2][BATCH * Q_HEADS * DIM];
    kvb_task *const loads[] = {decode("flash", 2, out[0], NULL, false), probe("read", 0, 0, 2)},
                    *const chases[] = {chase()},
                    *const own[] = {chase(), decode("flash", 2, out[1], NULL, false)};
    caller callers[] = {
        {small, own[0], {.team = large, .tasks = loads, .count = 2, .ahead = 3, .pause = 1}},
        {large, own[1], {.team = small, .tasks = chases, .count = 1, .ahead = 1, .pause = 0.5}}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, call, &callers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        kvb_task_free(loads[i]);
        kvb_task_free(own[i]);
    }
    kvb_task_free(chases[0]);
}

int beside(void)
{
    open_all();
    check_waits();
    check_threads();
    kvb_team_close(small);
    kvb_team_close(large);
    free(cache.k.rows); /* the start of its memory */
    free(buffer);
    return failed ? 1 : 0;
}
