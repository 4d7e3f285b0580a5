/* Runs beside a load: both teams give the same answers as alone; and how long a load lasts. */
#include "beside.h"

#include <semaphore.h>
#include <time.h>

enum { LONG = 700, HEADS = 2, COUNT = 2 * HEADS * DIM, AHEAD = 3 };

kvb_team *one, *two;

/* ---- answers --------------------------------------------------------------------------------- */

/* Open a cache of LONG tokens and two heads, and fill it with noise. */
static bool open_full(rig *r, uint64_t seed)
{
    static float rows[LONG * HEADS * DIM];
    kvb_cache shape = {.batch = 1, .kv_heads = HEADS, .head_dim = DIM, .capacity = LONG};
    if (!rig_open(r, shape, 1))
        return false;
    noise(rows, LONG * HEADS * DIM, seed);
    kvb_store put = {.cache = &r->cache, .k = rows, .v = rows, .tokens = LONG, .isa = tiers[0]};
    expect(!run_bulk(&put, 1), "bulk: %s", kvb_message());
    r->lengths[0] = LONG;
    return true;
}

/* The run and the load give the same bits as alone. The load may be a series. */
static void check_answers(void)
{
    rig r[2];
    if (!open_full(&r[0], 51) || !open_full(&r[1], 52))
        return;
    static float alone[2][COUNT], out[2][COUNT];
    for (int i = 0; i < 2; i++) {
        kvb_decode args = {.cache = &r[i].cache,
                           .q = source,
                           .out = alone[i],
                           .q_heads = 2 * HEADS,
                           .isa = tiers[0]};
        expect(!run_decode(&args, 1 + i), "decode: %s", kvb_message());
    }
    expect(memcmp(alone[0], alone[1], sizeof alone[0]), "two caches of one content");
    kvb_task *mine = decode_of(&r[0].cache, out[0], 1, NULL),
             *other = decode_of(&r[1].cache, out[1], 2, NULL), *series = twice(other, 2);
    for (int i = 0; i < 4; i++) {
        kvb_load load = {.team = two,
                         .tasks = i < 2 ? &other : &series,
                         .count = 1,
                         .ahead = 1 + i,
                         .pause = i % 2 * 0.5};
        memset(out, 0xff, sizeof out);
        expect(!beside(&mine, 1, NULL, &load), "run beside a load: %s", kvb_message());
        expect(!memcmp(out[0], alone[0], sizeof out[0]), "other bits than without a load");
        expect(!memcmp(out[1], alone[1], sizeof out[1]), "a load gives other bits than a run");
        expect(load.passes >= 1 && load.seconds > 0.0, "%ld passes of a load in %g s",
               (long)load.passes, load.seconds);
    }
    kvb_task_free(series);
    kvb_task_free(mine);
    kvb_task_free(other);
    rig_close(&r[0]);
    rig_close(&r[1]);
}

/* An append into a ring: the length tells the number of passes. */
static void check_ring(void)
{
    rig r, ring;
    kvb_cache shape = {.batch = 1, .kv_heads = 1, .head_dim = DIM, .capacity = CAPACITY, .ring = 1};
    if (!open_rig(&r, "head") || !rig_open(&ring, shape, 1))
        return;
    float out[2 * DIM];
    r.lengths[0] = 4;
    kvb_task *mine = decode_of(&r.cache, out, 1, NULL), *append = NULL;
    kvb_store put = {
        .cache = &ring.cache, .k = source, .v = source, .tokens = 1, .isa = tiers[0], .advance = 1};
    expect(!kvb_task_append(&put, 2, &append), "append: %s", kvb_message());
    kvb_task *const both[] = {append, append};
    for (int64_t ahead = 1; ahead < 4; ahead++) {
        kvb_load load = {.team = two, .tasks = both, .count = 2, .ahead = ahead, .pause = 0.25};
        const int64_t before = ring.lengths[0];
        expect(!beside(&mine, 1, NULL, &load), "append into a ring: %s", kvb_message());
        expect(ring.lengths[0] == before + ahead + load.passes,
               "%ld tokens of %ld passes ahead and %ld more", (long)(ring.lengths[0] - before),
               (long)ahead, (long)load.passes);
    }
    kvb_task_free(mine);
    kvb_task_free(append);
    rig_close(&r);
    rig_close(&ring);
}

/* ---- how long it lasts ----------------------------------------------------------------------- */

static sem_t load_passes, run_began;
static int64_t begun; /* passes of the load that have begun */
static bool too_early, too_short;

static bool waits(sem_t *for_it, int64_t seconds, long nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += seconds + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return !sem_timedwait(for_it, &until);
}

/* A pass of the load. The last pass ahead waits, to see that the run does not begin. */
static void load_unit(const kvb_work *work)
{
    work->max[0] = work->max[1] = work->sum[0] = work->sum[1] = 0.0f;
    memset(work->acc, 0, 2 * DIM * sizeof *work->acc);
    if (++begun == AHEAD)
        too_early = waits(&run_began, 0, 20000000);
    sem_post(&load_passes);
}

/* A pass of the run, which ends only after further passes of the load. */
static void run_unit(const kvb_work *work)
{
    work->max[0] = work->max[1] = work->sum[0] = work->sum[1] = 0.0f;
    memset(work->acc, 0, 2 * DIM * sizeof *work->acc);
    sem_post(&run_began);
    for (int i = 0; i < 2 * AHEAD; i++)
        too_short |= !too_short && !waits(&load_passes, 10, 0);
}

static void check_lasting(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[2][2 * DIM];
    r.lengths[0] = 4;
    kvb_team *other;
    expect(!kvb_team_open(NULL, 1, &other), "team: %s", kvb_message());
    kvb_task *mine = decode_of(&r.cache, out[0], 1, run_unit),
             *task = decode_of(&r.cache, out[1], 1, load_unit);
    kvb_load load = {.team = other, .tasks = &task, .count = 1, .ahead = AHEAD};
    sem_init(&load_passes, 0, 0);
    sem_init(&run_began, 0, 0);
    expect(!beside(&mine, 1, NULL, &load), "run beside a load: %s", kvb_message());
    expect(!too_early, "a run begins before the passes ahead are done");
    expect(!too_short, "a load ends before the run does");
    expect(begun == AHEAD + load.passes, "%ld passes of a load that says %ld", (long)begun,
           (long)load.passes);
    kvb_task_free(mine);
    kvb_task_free(task);
    kvb_team_close(other);
    rig_close(&r);
}

/* ---- plug-ins -------------------------------------------------------------------------------- */

static void writes_beside(const kvb_work *work)
{
    work->max[0] = work->max[1] = work->sum[0] = work->sum[1] = 0.0f;
    memset(work->acc, 0, 2 * DIM * sizeof *work->acc);
    work->acc[-1] += 1.0f;
}

static void check_faults(void)
{
    rig r;
    if (!open_rig(&r, "head"))
        return;
    float out[3][2 * DIM];
    r.lengths[0] = 4;
    kvb_task *good = decode_of(&r.cache, out[0], 1, NULL),
             *bad = decode_of(&r.cache, out[1], 1, writes_beside),
             *load_good = decode_of(&r.cache, out[2], 2, NULL),
             *load_bad = decode_of(&r.cache, out[2], 2, writes_beside);
    kvb_load load = {.team = two, .tasks = &load_bad, .count = 1, .ahead = 1};
    expect(beside(&good, 1, NULL, &load) == KVB_FOREIGN &&
               strstr(kvb_message(), "load: the plug-in wrote beside"),
           "a plug-in's fault in a load: %s", kvb_message());
    load.tasks = &load_good;
    expect(beside(&bad, 1, NULL, &load) == KVB_FOREIGN &&
               !strncmp(kvb_message(), "the plug-in wrote beside", 24),
           "a plug-in's fault beside a load: %s", kvb_message());
    expect(!beside(&good, 1, NULL, &load), "behind faults: %s", kvb_message());
    kvb_task_free(good);
    kvb_task_free(bad);
    kvb_task_free(load_good);
    kvb_task_free(load_bad);
    rig_close(&r);
}

void check_beside(void)
{
    noise(source, CAPACITY * DIM, 41);
    if (!expect(!kvb_team_open(NULL, 1, &one) && !kvb_team_open(NULL, 2, &two), "teams: %s",
                kvb_message()))
        return;
    check_loads();
    check_answers();
    check_ring();
    check_lasting();
    check_faults();
    kvb_team_close(one);
    kvb_team_close(two);
}
