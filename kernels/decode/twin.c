/* twin: read what a decode reads, and do nothing else. fill: write data for it; each page is first
 * touched by a thread that reads it. */
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "store/store.h"

typedef struct rows_task {
    kvb_task task;
    kvb_decode args;
    kvb_plan plan;
    uint64_t seed;
} rows_task;

static int32_t ready(const kvb_task *base, int64_t grown)
{
    const rows_task *task = (const rows_task *)base;
    return kvb_plan_ready(&task->args, base->threads, grown, &task->plan);
}

static void dispose(kvb_task *base) { kvb_plan_free(&((rows_task *)base)->plan); }

typedef struct twin_scratch {
    kvb_tile tile;
    kvb_lists lists;
    kvb_pair pair;
} twin_scratch;

static void read_rows(kvb_task *base, int32_t thread, void *scratch)
{
    rows_task *task = (rows_task *)base;
    const kvb_decode *a = &task->args;
    twin_scratch *s = scratch;
    kvb_walk walk;
    kvb_pair *pair = &s->pair;
    kvb_sum *sum = &base->sums[thread];
    kvb_pace pace = kvb_pace_of(base);
    kvb_walk_start(&walk, a, task->plan.units + task->plan.thread_units[thread],
                   task->plan.units + task->plan.thread_units[thread + 1]);
    kvb_schedule_twin(&walk);
    for (kvb_pair_start(pair, &walk); pair->block->unit; kvb_pair_next(pair, &walk)) {
        for (int64_t h = 0; h < pair->block->unit->heads; h += s->tile.k.schedule->kv_heads) {
            kvb_tile_make(&walk, pair, h, false, &s->tile, &s->lists);
            kvb_tier_of(a->isa)->twin(&s->tile, sum);
        }
        if (pair->next->unit != pair->block->unit)
            kvb_pace_unit(&pace);
    }
}

/* Convert 24 random bits to a number, uniform with unit variance. */
static float uniform(uint64_t bits)
{
    return ((float)(bits & 0xffffff) * 0x1p-23f - 1.0f) * 1.7320508f;
}

/* Make a random row. Each row has its own generator, so the data does not depend on threads, layout
 * or dtype. Seed, sequence, head and token are mixed in one by one, so that no row is a shifted
 * copy of another. */
static void random_row(uint64_t seed, int64_t seq, int64_t head, int64_t token, int64_t dim,
                       float *row)
{
    const uint64_t step = 0x9e3779b97f4a7c15u;
    uint64_t x =
        kvb_mix(kvb_mix(kvb_mix(seed + step) + step * (uint64_t)seq) + step * (uint64_t)head);
    x = kvb_mix(x + step * (uint64_t)token);
    for (int64_t d = 0; d < dim; d += 2) {
        uint64_t bits = kvb_mix(x += step);
        row[d] = uniform(bits);
        if (d + 1 < dim)
            row[d + 1] = uniform(bits >> 40);
    }
}

/* Write the row of a token in one plane. */
static void write_row(const rows_task *task, int32_t plane, int64_t seq, int64_t head,
                      int64_t token, float *values)
{
    const kvb_cache *c = task->args.cache;
    const kvb_plane *p = kvb_plane_of(c, plane);
    _Alignas(LINE) uint8_t beside[DIM_MAX * 4];
    int64_t row, scale = 0;
    kvb_offsets(c, p, seq, head, token, 1, &row, &scale);
    const kvb_encode run = {.to = p->cell ? beside : p->rows + row,
                            .scale = kvb_scaled(p) ? p->scales + scale : NULL,
                            .scale_dtype = p->scale,
                            .from = values,
                            .count = 1,
                            .dim = p->dim,
                            .row_bytes = p->row_bytes};
    random_row(task->seed + (uint64_t)plane, seq, head, token, p->dim, values);
    kvb_encode_rows(task->args.isa, p, head, true, &run);
    if (p->cell)
        kvb_lay_rows(p, beside, 1, kvb_lane(c, token), false, p->rows + row);
}

/* Write the rows of a thread's units. In perhead the query rows of a KV head read the same rows, so
 * each writes a share of them. */
static void fill_rows(kvb_task *base, int32_t thread, void *scratch)
{
    const rows_task *task = (const rows_task *)base;
    const int64_t sharers = task->args.variant == VARIANT_PERHEAD ? kvb_q_rows(&task->args) : 1;
    for (int64_t u = task->plan.thread_units[thread]; u < task->plan.thread_units[thread + 1];
         u++) {
        const kvb_unit *unit = &task->plan.units[u];
        const int64_t sharer = unit->q_row;
        const kvb_reach reach = kvb_attended(&task->args, unit->seq);
        const int64_t begin = kvb_place_among(&reach, unit->first), tokens = kvb_reached(&reach);
        const int64_t from = at_least(begin, tokens * sharer / sharers);
        const int64_t to = at_most(begin + unit->count, tokens * (sharer + 1) / sharers);
        for (int64_t i = from; i < to; i++)
            for (int64_t h = 0; h < unit->heads; h++)
                for (int32_t plane = 0; plane < PLANES; plane++)
                    write_row(task, plane, unit->seq, unit->head + h, kvb_nth(&reach, i), scratch);
    }
}

static int32_t make(const kvb_decode *args, int32_t threads, rows_task model, kvb_task **out)
{
    TRY(kvb_check_decode(args, threads));
    TRY(kvb_check_given("task", out));
    rows_task *task = kvb_task_new(sizeof *task, args->cache, threads);
    if (!task)
        return KVB_NO_MEMORY;
    task->args = *args;
    task->seed = model.seed;
    task->task.ready = ready;
    task->task.work = model.task.work;
    task->task.paces = model.task.work == read_rows;
    task->task.dispose = dispose;
    task->task.scratch_bytes = model.task.scratch_bytes;
    int32_t code = kvb_plan_make(&task->args, threads, &task->plan);
    code = code ? code : kvb_traffic_twin(&task->args, &task->plan, &task->task.traffic);
    if (!code && model.task.work == read_rows)
        code = kvb_task_sums(&task->task);
    return kvb_task_made(&task->task, code, out);
}

int32_t kvb_task_twin(const kvb_decode *args, int32_t threads, kvb_task **out)
{
    return make(args, threads,
                (rows_task){.task = {.work = read_rows, .scratch_bytes = sizeof(twin_scratch)}},
                out);
}

int32_t kvb_task_fill(const kvb_decode *args, int32_t threads, uint64_t seed, kvb_task **out)
{
    const int64_t row = DIM_MAX * (int64_t)sizeof(float);
    return make(args, threads,
                (rows_task){.seed = seed, .task = {.work = fill_rows, .scratch_bytes = row}}, out);
}
