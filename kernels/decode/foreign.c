/* Runs a plug-in's kernel: this library cuts the units and merges the states, and checks that the
 * kernel writes only what it may. */
#include <math.h>
#include <string.h>

#include "decode/decode.h"

enum { FRAME = 4 }; /* lines before max, sum and acc, and after acc, that nobody may write */

/* Where max, sum and acc begin in a thread's scratch, and how many floats they have. All other
 * bytes of the scratch are the frame. */
typedef struct frame {
    uint8_t *base;
    /* bytes; the last entry is the end of the frame after acc */
    int64_t begin[4];
    int64_t floats[3];
} frame;

static frame frame_of(const kvb_decode_task *task, uint8_t *scratch)
{
    int64_t states = task->heads * task->q_rows, dim = task->args.cache->v.dim;
    frame f = {.base = scratch, .begin = {FRAME * LINE}, .floats = {states, states, states * dim}};
    for (int i = 0; i < 3; i++)
        f.begin[i + 1] =
            round_up(f.begin[i] + f.floats[i] * (int64_t)sizeof(float), LINE) + FRAME * LINE;
    return f;
}

int64_t kvb_foreign_scratch(const kvb_decode_task *task) { return frame_of(task, NULL).begin[3]; }

/* Fill the frame, or count its bytes that have changed since. */
static int64_t frame_bytes(const frame *f, bool fill)
{
    enum { BYTE = 0xa5 };
    int64_t changed = 0;
    for (int64_t i = 0, at = 0; i < 4; i++) {
        int64_t end = f->begin[i];
        if (fill)
            memset(f->base + at, BYTE, (size_t)(end - at));
        for (int64_t byte = at; byte < end && !fill; byte++)
            changed += f->base[byte] != BYTE;
        at = end + (i < 3 ? f->floats[i] * (int64_t)sizeof(float) : 0);
    }
    return changed;
}

/* Read and set how this thread rounds and treats subnormal numbers. */
#if defined(__x86_64__)
static uint64_t float_mode(void)
{
    enum { STATUS = 0x3f }; /* flags that any arithmetic may raise */
    return __builtin_ia32_stmxcsr() & ~(unsigned)STATUS;
}
static void set_float_mode(uint64_t mode) { __builtin_ia32_ldmxcsr((unsigned)mode); }
#elif defined(__aarch64__)
static uint64_t float_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static void set_float_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }
#else
static uint64_t float_mode(void) { return 0; }
static void set_float_mode(uint64_t mode) { (void)mode; }
#endif

static void complain(kvb_decode_task *task, const char *what)
{
    __atomic_store_n(&task->task.fault, what, __ATOMIC_RELAXED);
}

/* Call the kernel with a copy of the work, and restore the thread's rounding after it. */
static void call(kvb_decode_task *task, kvb_work work)
{
    uint64_t mode = float_mode();
    task->args.run(&work);
    if (float_mode() != mode) {
        set_float_mode(mode);
        complain(task, "changed how the CPU rounds or treats small numbers");
    }
}

/* Write the state of a unit without tokens: no weight. */
static void leave_empty(const kvb_work *work)
{
    int64_t states = work->q_len * work->heads * work->group;
    for (int64_t i = 0; i < states; i++)
        work->max[i] = -INFINITY;
    memset(work->sum, 0, (size_t)states * sizeof *work->sum);
    memset(work->acc, 0, (size_t)(states * work->cache->v.dim) * sizeof *work->acc);
}

/* For the core roof: call the kernel for as many tokens as the unit has, in windows of the first
 * head. The result is that of the last window. */
static void call_wrapped(kvb_decode_task *task, const kvb_unit *unit, kvb_work work)
{
    work.seq = work.head = work.first = 0;
    work.ends = NULL;
    work.mask = KVB_MASK_CHAIN;
    work.tree = NULL;
    for (int64_t done = 0; done < unit->count; done += work.count) {
        work.count = at_most(task->args.wrap, unit->count - done);
        call(task, work);
    }
}

/* Make the kvb_work of a unit. `ends` is null if there is one query that attends to all tokens. */
static kvb_work work_of(const kvb_decode_task *task, const kvb_unit *unit)
{
    const kvb_decode *a = &task->args;
    const int64_t queries = kvb_queries(a), k_dim = a->cache->k.dim;
    const bool several = queries > 1 || a->ends;
    return (kvb_work){.cache = a->cache,
                      .seq = unit->seq,
                      .head = unit->head,
                      .heads = unit->heads,
                      .group = kvb_group_of(a),
                      .first = unit->first,
                      .count = unit->count,
                      .q_len = kvb_queries_of(a, unit->seq),
                      .ends = several ? task->plan.ends + unit->seq * queries : NULL,
                      .mask = a->mask,
                      .tree = a->tree ? a->tree + unit->seq * queries : NULL,
                      .q_stride = a->q_heads * k_dim,
                      .q = a->q + kvb_q_vector(a, unit->seq, unit->head, 0) * k_dim,
                      .scale = a->scale,
                      .softcap = a->softcap,
                      .slope = a->slope ? a->slope + unit->head * kvb_group_of(a) : NULL};
}

/* Write the results of a unit's query rows. The kernel's states are ordered by query. */
static void end_unit(const kvb_decode_task *task, const kvb_unit *unit, const kvb_work *work)
{
    const int64_t group = work->group, dim = work->cache->v.dim;
    for (int64_t head = 0; head < unit->heads; head++)
        for (int64_t row = 0; row < unit->q_rows; row++) {
            const int64_t query = row / group,
                          i = (query * unit->heads + head) * group + row % group;
            if (query < work->q_len)
                kvb_row_end(task, unit, head, row, work->max[i] * kvb_log2_e, work->sum[i],
                            work->acc + i * dim, 1.0f);
            else
                kvb_row_end(task, unit, head, row, -INFINITY, 0.0f, NULL, 1.0f);
        }
}

void kvb_foreign(kvb_task *base, int32_t thread, void *scratch)
{
    kvb_decode_task *task = (kvb_decode_task *)base;
    frame f = frame_of(task, scratch);
    float *max = (float *)(void *)(f.base + f.begin[0]),
          *sum = (float *)(void *)(f.base + f.begin[1]);
    float *acc = (float *)(void *)(f.base + f.begin[2]);
    kvb_pace pace = kvb_pace_of(base);
    frame_bytes(&f, true);
    for (int64_t u = task->plan.thread_units[thread]; u < task->plan.thread_units[thread + 1];
         u++) {
        const kvb_unit *unit = &task->plan.units[u];
        kvb_work work = work_of(task, unit);
        work.max = max;
        work.sum = sum;
        work.acc = acc;
        if (!unit->count)
            leave_empty(&work);
        else if (task->args.wrap)
            call_wrapped(task, unit, work);
        else
            call(task, work);
        end_unit(task, unit, &work);
        kvb_pace_unit(&pace);
    }
    if (frame_bytes(&f, false))
        complain(task, "wrote beside max, sum and acc");
}
