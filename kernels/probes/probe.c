/* Probe tasks: each thread streams its own contiguous lines, computes, or follows a chain. */
#include "base/pace.h"
#include "base/stream.h"
#include "tier/tier.h"

enum { ADDITIONS = 64 };   /* in one iteration; the loop's counter runs in parallel */
enum { UNIT = 128 << 10 }; /* bytes of each buffer between two waits of a load */

typedef struct probe_task {
    kvb_task task;
    kvb_probe args;
    const kvb_tier *tier;
    /* latency: where the last pass stopped, so that a line is visited again only after all others
     */
    const void *at;
    int64_t line; /* read: the first line of the next piece */
} probe_task;

/* Whether an address is the start of a line in the buffer of a chain. */
static bool in_chain(const kvb_probe *args, const void *at)
{
    uintptr_t from = (uintptr_t)at - (uintptr_t)args->a;
    return from < (uintptr_t)args->bytes && from % LINE == 0;
}

static const void *next_of(const void *at) { return *(void *const *)at; }

/* Do `steps` dependent loads along the chain from `at`; return where they end. If the chain was
 * overwritten, they end before leaving the buffer: the check is a branch that the CPU predicts, so
 * no load waits for it. */
static const void *chase(const kvb_probe *args, const void *at)
{
    for (int64_t i = 0; i < args->steps && in_chain(args, at); i++)
        at = next_of(at);
    return at;
}

/* Do `steps` additions, each of which needs the one before: one cycle each on all known cores. They
 * add registers, because some cores add constants while they rename registers. */
static void count(int64_t steps)
{
    uint64_t sum = 0, one = 1;
    __asm__("" : "+r"(sum), "+r"(one));
    for (int64_t i = 0; i < steps / ADDITIONS; i++)
        UNROLL_UP_TO(64) for (int j = 0; j < ADDITIONS; j++)
        {
            sum += one;
            __asm__ volatile("" : "+r"(sum));
        }
    for (int64_t i = 0; i < steps % ADDITIONS; i++) {
        sum += one;
        __asm__ volatile("" : "+r"(sum));
    }
}

/* Return how the probe prefetches, like its schedule while it reads rows: in address order, or from
 * several runs of the next block of K and of V. */
static kvb_ahead ahead_of(const kvb_probe *args)
{
    const kvb_preset *preset = &kvb_presets[args->schedule];
    if (!preset->asks)
        return (kvb_ahead){.distance = args->distance};
    return (kvb_ahead){.distance = preset->in_order ? preset->distance : 2 * preset->block,
                       .streams = preset->streams,
                       .to_l2 = preset->to_l2 & PRODUCTS_NONE};
}

/* Return the address of a line in a buffer. Null stays null, since an op has only the buffers that
 * it needs. */
static uint8_t *share(const void *buffer, int64_t first)
{
    return buffer ? (uint8_t *)buffer + first : NULL;
}

/* The part of each buffer that the op works on. */
typedef struct stretch {
    uint8_t *a, *b, *c;
    int64_t bytes;
} stretch;

/* Do the op over a stretch, `sweeps` times. Each op has its own loop: with one loop for all ops,
 * sweeps of 16 KiB took up to 5 % more time. */
static void move(kvb_task *task, const probe_task *probe, int32_t thread, stretch s, int64_t sweeps)
{
    const kvb_tier *tier = probe->tier;
    const int64_t distance = probe->args.distance;
    const kvb_ahead ahead = ahead_of(&probe->args);
    switch (probe->args.op) {
    case OP_READ:
        for (; sweeps > 0; sweeps--)
            tier->read(s.a, s.bytes, ahead, &task->sums[thread]);
        break;
    case OP_WRITE:
        for (; sweeps > 0; sweeps--)
            tier->write(s.a, s.bytes);
        break;
    case OP_WRITE_NT:
        for (; sweeps > 0; sweeps--)
            tier->write_nt(s.a, s.bytes);
        break;
    case OP_COPY:
        for (; sweeps > 0; sweeps--)
            tier->copy(s.a, s.b, s.bytes, distance);
        break;
    case OP_COPY_NT:
        for (; sweeps > 0; sweeps--)
            tier->copy_nt(s.a, s.b, s.bytes, distance);
        break;
    case OP_TRIAD:
        for (; sweeps > 0; sweeps--)
            tier->triad(s.a, s.b, s.c, s.bytes);
        break;
    }
}

/* Do the op over bytes at .. at + bytes of each buffer, `sweeps` times. In a load with a pause,
 * wait after each unit. */
static void sweep(kvb_task *task, const probe_task *probe, int32_t thread, int64_t at,
                  int64_t bytes, int64_t sweeps)
{
    const kvb_probe *args = &probe->args;
    kvb_pace pace = kvb_pace_of(task);
    const bool paced = pace.pause > 0.0;
    const int64_t unit = paced ? UNIT : bytes, together = paced ? 1 : sweeps;
    for (; sweeps > 0; sweeps -= together)
        for (int64_t done = 0; done < bytes; done += unit) {
            const stretch s = {share(args->a, at + done), share(args->b, at + done),
                               share(args->c, at + done), at_most(unit, bytes - done)};
            move(task, probe, thread, s, together);
            kvb_pace_unit(&pace);
        }
}

/* Read a thread's share of the next piece, which wraps at the end of the buffer. */
static void read_piece(kvb_task *task, const probe_task *probe, int32_t thread)
{
    const kvb_probe *args = &probe->args;
    const int64_t lines = args->piece / LINE, all = args->bytes / LINE;
    int64_t at = (probe->line + lines * thread / task->threads) % all,
            left = lines * (thread + 1) / task->threads - lines * thread / task->threads;
    while (left > 0) {
        int64_t run = at_most(left, all - at);
        sweep(task, probe, thread, at * LINE, run * LINE, 1);
        left -= run;
        at = 0;
    }
}

static void next_piece(kvb_task *task)
{
    probe_task *probe = (probe_task *)(void *)task;
    probe->line = (probe->line + probe->args.piece / LINE) % (probe->args.bytes / LINE);
}

static void work(kvb_task *task, int32_t thread, void *scratch)
{
    probe_task *probe = (probe_task *)(void *)task;
    const kvb_probe *args = &probe->args;
    int64_t lines = args->bytes / LINE;
    int64_t first = lines * thread / task->threads * LINE,
            bytes = lines * (thread + 1) / task->threads * LINE - first;
    (void)scratch;
    switch (args->op) {
    case OP_FLOPS:
    case OP_DOT8:
    case OP_DOT16:
        probe->tier->compute[args->op](args->steps);
        return;
    case OP_CLOCK:
        count(args->steps);
        return;
    case OP_LATENCY:
        if (thread == 0)
            probe->at = chase(args, probe->at);
        return;
    }
    if (args->piece) {
        read_piece(task, probe, thread);
        return;
    }
    sweep(task, probe, thread, first, bytes, at_least(1, args->steps));
    if (args->op == OP_WRITE_NT || args->op == OP_COPY_NT)
        stream_end(); /* once: after every sweep it would drain write buffers that are in use */
}

/* Check that every line leads to a line of the buffer. */
static int32_t check_chain(const kvb_probe *args)
{
    for (int64_t at = 0; at < args->bytes; at += LINE)
        if (!in_chain(args, next_of((const uint8_t *)args->a + at)))
            return kvb_fail(KVB_BAD_ARGUMENT, "a is not a chain: line %lld leads out of it",
                            (long long)(at / LINE));
    return KVB_OK;
}

/* Check only the line where the walk goes on: reading all lines would bring them into the caches
 * that the loads must miss. */
static int32_t ready(const kvb_task *base, int64_t grown)
{
    const probe_task *probe = (const probe_task *)(const void *)base;
    (void)grown;
    if (in_chain(&probe->args, probe->at) && in_chain(&probe->args, next_of(probe->at)))
        return KVB_OK;
    return kvb_fail(KVB_BAD_ARGUMENT,
                    "a is not a chain any more: it was overwritten after the task was planned");
}

/* Check `piece`. It may be larger than the buffer, but no thread's start may overflow. */
static int32_t check_piece(const kvb_probe *a)
{
    if (a->piece && (a->op != OP_READ || a->steps))
        return kvb_fail(KVB_BAD_ARGUMENT, "piece is %lld; only a read without steps has a piece",
                        (long long)a->piece);
    TRY(kvb_check_range("piece", a->piece, 0, bytes_max / THREADS_MAX));
    return kvb_check_lines("piece", a->piece);
}

static int32_t check_probe(const kvb_probe *a, int32_t threads)
{
    TRY(kvb_check_given("probe arguments", a));
    TRY(kvb_check_threads(threads));
    if (a->op < OP_READ || a->op > OP_CLOCK)
        return kvb_fail(KVB_BAD_ARGUMENT, "op %d is not a probe", a->op);
    TRY(kvb_check_isa(a->isa));
    TRY(kvb_check_word("schedule", a->schedule, SCHEDULES));
    if (kvb_computes(a->op) && !kvb_tier_of(a->isa)->compute[a->op])
        return kvb_fail(KVB_UNSUPPORTED, "isa %s has no %s", kvb_word("isa", a->isa),
                        kvb_word("op", a->op));
    if (kvb_computes(a->op) && !kvb_half_runs(a->isa, kvb_way_computed(a->op), KVB_K))
        return kvb_fail(KVB_UNSUPPORTED, "%s of isa %s does not run on this CPU",
                        kvb_word("op", a->op), kvb_word("isa", a->isa));
    TRY(kvb_check_range("steps", a->steps, a->op >= OP_FLOPS, INT64_MAX / 1024));
    TRY(check_piece(a));
    if (kvb_computes(a->op) || a->op == OP_CLOCK)
        return KVB_OK;
    TRY(kvb_check_range("bytes", a->bytes, LINE, bytes_max));
    TRY(kvb_check_lines("bytes", a->bytes));
    TRY(kvb_check_range("distance", a->distance, 0, 1 << 20));
    TRY(kvb_check_aligned("a", a->a));
    if (a->op == OP_COPY || a->op == OP_COPY_NT || a->op == OP_TRIAD)
        TRY(kvb_check_aligned("b", a->b));
    return a->op == OP_TRIAD     ? kvb_check_aligned("c", a->c)
           : a->op == OP_LATENCY ? check_chain(a)
                                 : KVB_OK;
}

static void count_traffic(const kvb_probe *a, kvb_traffic *t)
{
    static const int streams[OPS] = {[OP_READ] = 1, [OP_WRITE] = 1,   [OP_WRITE_NT] = 1,
                                     [OP_COPY] = 2, [OP_COPY_NT] = 2, [OP_TRIAD] = 3};
    double sweeps = (double)at_least(1, a->steps);
    *t = (kvb_traffic){0};
    t->compulsory = t->issued = t->line =
        streams[a->op] * sweeps * (double)(a->piece ? a->piece : a->bytes);
    if (a->op == OP_TRIAD)
        t->flops = 2.0 * sweeps * (double)a->bytes / sizeof(float);
    if (a->op == OP_LATENCY) {
        t->issued = (double)a->steps * sizeof(void *);
        t->line = (double)a->steps * LINE;
    }
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
}

int32_t kvb_task_probe(const kvb_probe *args, int32_t threads, kvb_task **task)
{
    TRY(check_probe(args, threads));
    TRY(kvb_check_given("task", task));
    probe_task *probe = kvb_task_new(sizeof *probe, NULL, threads);
    if (!probe)
        return KVB_NO_MEMORY;
    probe->args = *args;
    probe->tier = kvb_computes(args->op) ? kvb_tier_with(args->isa, kvb_way_computed(args->op))
                                         : kvb_tier_of(args->isa);
    probe->at = args->a;
    probe->task.ready = args->op == OP_LATENCY ? ready : NULL;
    probe->task.work = work;
    probe->task.paces = args->op < OP_FLOPS;
    probe->task.count = args->piece ? next_piece : NULL;
    count_traffic(args, &probe->task.traffic);
    if (kvb_computes(args->op)) /* each tier has its own FLOPs in a round */
        probe->task.traffic.flops =
            probe->tier->compute[args->op](1) * (double)args->steps * threads;
    return kvb_task_made(&probe->task, args->op == OP_READ ? kvb_task_sums(&probe->task) : KVB_OK,
                         task);
}
