/* The decode task: scratch, the beginning and end of units, and the merge of partial states. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"

/* ---- scratch --------------------------------------------------------------------------------- */

/* Take `bytes` from *at, on a line of its own; with a null base this only counts. */
static void *take(uintptr_t *at, int64_t bytes)
{
    void *here = (void *)*at;
    *at += (uintptr_t)round_up(bytes, LINE);
    return here;
}

static int64_t floats(int64_t n) { return n * (int64_t)sizeof(float); }

/* Of so many query rows those of a part: all are full but the last. */
static int64_t rows_of_part(const kvb_decode_task *task, int64_t q_rows, int64_t part)
{
    return at_least(0, at_most(task->most, q_rows - part * task->most));
}

/* Room for those of a part where a sequence has all queries. */
static int64_t slots_of_part(const kvb_decode_task *task, int64_t part)
{
    return 1 << kvb_class(rows_of_part(task, task->q_rows, part));
}

/* Lay a thread's state over its scratch, behind the ticks. Returns the bytes it takes. */
static int64_t carve(const kvb_decode_task *task, void *scratch, kvb_state **state)
{
    uintptr_t at = (uintptr_t)scratch;
    const kvb_cache *c = task->args.cache;
    int64_t units = task->heads * task->parts, slots = task->heads * task->slots;
    const bool wide_any = task->wide[KVB_K] || task->wide[KVB_V];
    take(&at, LINE);
    kvb_state *s = take(&at, sizeof *s);
    kvb_group *groups = take(&at, units * (int64_t)sizeof *groups);
    float *q = take(&at, floats(slots * task->k_pad)),
          *acc = take(&at, floats(slots * task->v_pad));
    float *sum = take(&at, floats(slots * LANES));
    float *max = take(&at, floats(units * Q_ROWS)), *rescale = take(&at, floats(units * Q_ROWS));
    int64_t *firsts = take(&at, units * Q_ROWS * (int64_t)sizeof *firsts);
    int64_t *ends = take(&at, units * Q_ROWS * (int64_t)sizeof *ends);
    uint32_t *words = take(&at, units * Q_ROWS * (int64_t)sizeof *words);
    float *scores = take(&at, floats(at_least(1, task->rooms) * units * HEAD_SCORES));
    float *wide =
        take(&at, floats((wide_any ? task->step : 0) * at_least(task->k_pad, task->v_pad)));
    const bool prepares = kvb_qk_of(&task->args)->prepare_query;
    const int64_t prepared_each = prepares ? round_up(prepared_bytes(c->k.dim), LINE) : 0;
    uint8_t *prepared = take(&at, units * prepared_each);
    if (!scratch)
        return (int64_t)at;
    *state = s;
    s->groups = groups;
    s->scores = scores;
    s->wide = wide;
    for (int64_t i = 0, slot = 0; i < units; i++) {
        groups[i] = (kvb_group){
            .k_dim = (int32_t)c->k.dim,
            .v_dim = (int32_t)c->v.dim,
            .k_pad = task->k_pad,
            .v_pad = task->v_pad,
            .q = q + slot * task->k_pad,
            .firsts = firsts + i * Q_ROWS,
            .ends = ends + i * Q_ROWS,
            .words = words + i * Q_ROWS,
            .max = max + i * Q_ROWS,
            .sum = sum + slot * LANES,
            .rescale = rescale + i * Q_ROWS,
            .acc = acc + slot * task->v_pad,
            .prepared = prepares ? (kvb_prepared *)(void *)(prepared + i * prepared_each) : NULL,
        };
        slot += slots_of_part(task, i % task->parts);
    }
    return (int64_t)(at - (uintptr_t)scratch);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* `dim` elements times `scale`, to parts that lie `stride` from each other. */
static inline void put_parts(const float *restrict from, int64_t dim, float scale,
                             float *restrict to, int64_t stride, const int64_t part)
{
    int64_t d = 0;
    for (; d + part <= dim; d += part, to += stride)
        for (int64_t i = 0; i < part; i++)
            to[i] = from[d + i] * scale;
    for (; d < dim; d++)
        *to++ = from[d] * scale;
}

/* A query row, times `scale`, to where its group has it, as q_index() says: lengths that parts
 * often have are constants, so that the compiler writes out their vectors. */
static void put_query(const kvb_group *g, int64_t q_row, const float *from, float scale)
{
    float *to = (float *)(uintptr_t)g->q + q_row * g->part;
    const int64_t stride = g->slots * g->part;
    if (g->part == LANES)
        put_parts(from, g->k_dim, scale, to, stride, LANES);
    else if (g->part == LANES / 4)
        put_parts(from, g->k_dim, scale, to, stride, LANES / 4);
    else
        put_parts(from, g->k_dim, scale, to, stride, g->part);
}

/* For so many query rows: how q lies. */
static void begin_rows(const kvb_decode_task *task, int64_t q_rows, kvb_group *g)
{
    const int64_t of_eight = kvb_tier_of(task->args.isa)->q_part;
    /* dot makes codes of each query row by itself */
    const bool by_rows = !of_eight || task->args.variant == VARIANT_DOT;
    g->q_rows = (int32_t)q_rows;
    g->slots = 1 << kvb_class(q_rows);
    g->part = by_rows ? task->k_pad : q_rows > Q_ROWS / 2 ? of_eight : LANES;
}

/* What a query row attends to. The core roof's walk is of as many tokens, all of them. */
static void begin_seen(const kvb_decode *a, int64_t seq, int64_t q_row, kvb_group *g, int64_t r)
{
    const kvb_seen seen = a->wrap ? (kvb_seen){.end = INT64_MAX, .newest = INT64_MAX}
                                  : kvb_seen_by(a, seq, kvb_query_of(a, q_row));
    g->firsts[r] = seen.first;
    g->ends[r] = seen.end;
    g->words[r] = seen.word;
    g->newest = at_most(g->newest, seen.newest);
}

/* Query rows first .. first + q_rows of a KV head. */
static void begin_group(const kvb_decode_task *task, const kvb_unit *unit, int64_t head,
                        int64_t first, int64_t q_rows, kvb_group *g)
{
    const kvb_decode *a = &task->args;
    const float scale = a->scale * kvb_log2_e * kvb_tensor(a->cache->k.tensor);
    begin_rows(task, q_rows, g);
    memset((float *)(uintptr_t)g->q, 0, (size_t)floats(g->slots * g->k_pad));
    memset(g->acc, 0, (size_t)floats(g->slots * g->v_pad));
    memset(g->sum, 0, (size_t)floats(g->slots * LANES));
    for (int h = 0; h < Q_ROWS; h++) {
        g->max[h] = -INFINITY;
        g->rescale[h] = 1.0f;
    }
    g->newest = INT64_MAX;
    for (int64_t r = 0; r < g->q_rows; r++) {
        const int64_t q_row = unit->q_row + first + r;
        put_query(g, r, a->q + kvb_q_vector(a, unit->seq, head, q_row) * g->k_dim, scale);
        begin_seen(a, unit->seq, q_row, g, r);
    }
    if (g->prepared)
        kvb_qk_of(a)->prepare_query(g);
}

void kvb_unit_begin(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit)
{
    const int64_t q_rows = kvb_unit_rows(&task->args, unit);
    state->parts = (q_rows + task->most - 1) / task->most;
    for (int64_t h = 0; h < unit->heads; h++)
        for (int64_t p = 0; p < state->parts; p++)
            begin_group(task, unit, unit->head + h, p * task->most, rows_of_part(task, q_rows, p),
                        &state->groups[h * task->parts + p]);
}

static float total(const float *lanes)
{
    float sum = 0.0f;
    for (int i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

void kvb_unit_end(const kvb_decode_task *task, kvb_state *state, const kvb_unit *unit)
{
    const float tensor = kvb_tensor(task->args.cache->v.tensor);
    const int64_t q_rows = kvb_unit_rows(&task->args, unit);
    for (int64_t h = 0; h < unit->heads; h++) {
        for (int64_t row = 0; row < q_rows; row++) {
            const kvb_group *g = &state->groups[h * task->parts + row / task->most];
            const int64_t r = row % task->most;
            kvb_row_end(task, unit, h, row, g->max[r], total(g->sum + r * LANES),
                        g->acc + r * g->v_pad, tensor);
        }
        for (int64_t row = q_rows; row < unit->q_rows; row++)
            kvb_row_end(task, unit, h, row, -INFINITY, 0.0f, NULL, tensor);
    }
}

static void work(kvb_task *base, int32_t thread, void *scratch)
{
    static void (*const variants[VARIANTS])(const kvb_decode_task *, kvb_state *, kvb_walk *,
                                            double *) = {[VARIANT_FLASH] = kvb_flash,
                                                         [VARIANT_TWOPASS] = kvb_twopass,
                                                         [VARIANT_PERHEAD] = kvb_perhead,
                                                         /* these are flash over other halves */
                                                         [VARIANT_ROUND16] = kvb_flash,
                                                         [VARIANT_DOT] = kvb_flash};
    kvb_decode_task *task = (kvb_decode_task *)base;
    kvb_state *state = NULL;
    carve(task, scratch, &state);
    const kvb_unit *unit = task->plan.units + task->plan.thread_units[thread];
    const kvb_unit *end = task->plan.units + task->plan.thread_units[thread + 1];
    for (const kvb_unit *u = unit; u < end; u++)
        if (!u->count) {
            kvb_unit_begin(task, state, u);
            kvb_unit_end(task, state, u);
        }
    kvb_walk_start(&state->walk, &task->args, unit, end);
    variants[task->args.variant](task, state, &state->walk, task->args.stages ? scratch : NULL);
#ifdef KVB_SLOW
    kvb_slow(task, state, unit, end);
#endif
}

/* ---- the task -------------------------------------------------------------------------------- */

/* twopass: rooms for the scores of a unit with the most blocks. */
static int64_t most_rooms(const kvb_decode_task *task)
{
    const int64_t side = TILE / task->step;
    int64_t most = 0;
    for (int64_t u = 0; u < task->plan.scan_units[task->plan.scans]; u++) {
        kvb_walk walk;
        kvb_block block;
        int64_t blocks = -1;
        kvb_walk_start(&walk, &task->args, &task->plan.units[u], &task->plan.units[u] + 1);
        do {
            kvb_walk_next(&walk, &block);
            blocks++;
        } while (block.unit);
        most = at_least(most, (blocks + side - 1) / side);
    }
    return most;
}

/* Where a ring of another capacity ends, a unit may have more blocks than there are scores for. */
static int32_t ready(const kvb_task *base, int64_t grown)
{
    const kvb_decode_task *task = (const kvb_decode_task *)base;
    const kvb_cache *c = base->cache;
    int32_t code = kvb_plan_ready(&task->args, base->threads, grown, &task->plan);
    if (code || c->capacity == base->shape.capacity || task->args.variant != VARIANT_TWOPASS)
        return code;
    return most_rooms(task) <= task->rooms
               ? KVB_OK
               : kvb_fail(KVB_BAD_ARGUMENT, "capacity of the cache changed its tiles");
}

static void dispose(kvb_task *base)
{
    kvb_decode_task *task = (kvb_decode_task *)base;
    kvb_plan_free(&task->plan);
    free(task->partials);
}

static int32_t prepare(kvb_decode_task *task)
{
    const kvb_decode *a = &task->args;
    kvb_walk walk;
    TRY(kvb_plan_make(a, task->task.threads, &task->plan));
    task->q_rows = a->variant == VARIANT_PERHEAD ? 1 : kvb_q_rows(a);
    task->most = kvb_most_of(a);
    for (int32_t p = 0; p < PLANES; p++)
        task->wide[p] = kvb_made_wide(a, kvb_plane_of(a->cache, p));
    task->parts = (task->q_rows + task->most - 1) / task->most;
    for (int64_t part = 0; part < task->parts; part++)
        task->slots += slots_of_part(task, part);
    task->heads = kvb_unit_heads(a);
    task->k_pad = round_up(a->cache->k.dim, LANES);
    task->v_pad = round_up(a->cache->v.dim, LANES);
    kvb_walk_start(&walk, a, task->plan.units, task->plan.units);
    task->step = walk.cut.tokens;
    task->rooms = a->variant == VARIANT_TWOPASS ? most_rooms(task) : 1;
    task->task.scratch_bytes = a->run ? kvb_foreign_scratch(task) : carve(task, NULL, NULL);
    if (task->plan.partials) {
        size_t bytes = (size_t)(task->plan.partials * floats(LANES + task->v_pad));
        task->partials = aligned_alloc(LINE, (size_t)round_up((int64_t)bytes, LINE));
        if (!task->partials)
            return kvb_fail(KVB_NO_MEMORY, "no memory for %zu bytes of partial states", bytes);
        task->task.finish = kvb_merge;
    }
    return KVB_OK;
}

int32_t kvb_task_decode(const kvb_decode *args, int32_t threads, kvb_task **out)
{
    TRY(kvb_check_decode(args, threads));
    TRY(kvb_check_given("task", out));
    kvb_decode_task *task = kvb_task_new(sizeof *task, args->cache, threads);
    if (!task)
        return KVB_NO_MEMORY;
    task->args = *args;
    task->args.scale =
        args->scale > 0.0f ? args->scale : 1.0f / sqrtf((float)args->cache->head_dim);
    task->task.ready = ready;
    task->task.work = args->run ? kvb_foreign : work;
    task->task.dispose = dispose;
    task->task.stages = args->stages && args->variant != VARIANT_PERHEAD && !args->run;
    int32_t code = prepare(task);
    code = code ? code : kvb_traffic_decode(&task->args, &task->plan, &task->task.traffic);
    return kvb_task_made(&task->task, code, out);
}
