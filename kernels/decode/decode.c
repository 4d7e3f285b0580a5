/* The decode task: scratch, and what each thread does. */
#include <math.h>
#include <stdlib.h>

#include "decode/decode.h"

/* ---- scratch --------------------------------------------------------------------------------- */

/* Take `bytes` from *at, on a line of its own. With a null base this only counts. */
static void *take(uintptr_t *at, int64_t bytes)
{
    void *here = (void *)*at;
    *at += (uintptr_t)round_up(bytes, LINE);
    return here;
}

/* Return the slots of a part in a sequence that has all queries. */
static int64_t slots_of_part(const kvb_decode_task *task, int64_t part)
{
    return 1 << kvb_class(kvb_part_rows(task, task->q_rows, part));
}

/* Return the bytes of scratch for rows of a plane that are converted or turned. */
static int64_t made_bytes(const kvb_decode_task *task, int32_t plane)
{
    const bool of_k = plane == KVB_K;
    if (task->made[plane] == MADE_TURNED) /* 16-bit words */
        return of_k ? TURNED * 2 * round_up(task->k_pad, LINE) : TURNED_RUN * LINE;
    return task->made[plane] ? kvb_floats(WIDE * (of_k ? task->k_pad : task->v_pad)) : 0;
}

/* Place a thread's state in its scratch, after the ticks. Returns the bytes that it takes. */
static int64_t carve(const kvb_decode_task *task, void *scratch, kvb_state **state)
{
    uintptr_t at = (uintptr_t)scratch;
    const kvb_cache *c = task->args.cache;
    int64_t units = task->heads * task->parts, slots = task->heads * task->slots;
    take(&at, LINE);
    kvb_state *s = take(&at, sizeof *s);
    kvb_group *groups = take(&at, units * (int64_t)sizeof *groups);
    float *q = take(&at, kvb_floats(slots * task->k_pad)),
          *acc = take(&at, kvb_floats(slots * task->v_pad));
    float *sum = take(&at, kvb_floats(slots * LANES));
    float *max = take(&at, kvb_floats(units * Q_ROWS)),
          *rescale = take(&at, kvb_floats(units * Q_ROWS));
    const int64_t tokens = units * Q_ROWS * (int64_t)sizeof(int64_t);
    int64_t *kepts = take(&at, tokens), *firsts = take(&at, tokens), *ends = take(&at, tokens),
            *owns = take(&at, tokens);
    float *slopes = take(&at, kvb_floats(units * Q_ROWS));
    uint32_t *words = take(&at, units * Q_ROWS * (int64_t)sizeof *words);
    float *scores = take(&at, kvb_floats(at_least(1, task->rooms) * units * HEAD_SCORES));
    void *made = take(&at, at_least(made_bytes(task, KVB_K), made_bytes(task, KVB_V)));
    const bool prepares = kvb_qk_of(&task->args)->prepare_query;
    const int64_t prepared_each = prepares ? round_up(prepared_bytes(c->k.dim), LINE) : 0;
    uint8_t *prepared = take(&at, units * prepared_each);
    if (!scratch)
        return (int64_t)at;
    *state = s;
    s->groups = groups;
    s->scores = scores;
    s->wide = made;
    s->turned = made;
    for (int64_t i = 0, slot = 0; i < units; i++) {
        groups[i] = (kvb_group){
            .k_dim = (int32_t)c->k.dim,
            .v_dim = (int32_t)c->v.dim,
            .k_pad = task->k_pad,
            .v_pad = task->v_pad,
            .q = q + slot * task->k_pad,
            .kepts = kepts + i * Q_ROWS,
            .firsts = firsts + i * Q_ROWS,
            .ends = ends + i * Q_ROWS,
            .owns = owns + i * Q_ROWS,
            .words = words + i * Q_ROWS,
            .slopes = task->args.slope ? slopes + i * Q_ROWS : NULL,
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

/* ---- units of a thread ----------------------------------------------------------------------- */

static void work(kvb_task *base, int32_t thread, void *scratch)
{
    static void (*const variants[VARIANTS])(const kvb_decode_task *, kvb_state *, kvb_walk *,
                                            double *) = {[VARIANT_FLASH] = kvb_flash,
                                                         [VARIANT_TWOPASS] = kvb_twopass,
                                                         [VARIANT_PERHEAD] = kvb_perhead,
                                                         /* these are flash with other halves */
                                                         [VARIANT_ROUND16] = kvb_flash,
                                                         [VARIANT_DOT] = kvb_flash};
    kvb_decode_task *task = (kvb_decode_task *)base;
    kvb_state *state = NULL;
    carve(task, scratch, &state);
    state->pace = kvb_pace_of(base);
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

/* twopass: return the buffers for the scores of the unit with the most blocks. */
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

/* Check the task before a run. A ring of another capacity wraps elsewhere: then a unit may have
 * more blocks than there are scores for. */
static int32_t ready(const kvb_task *base, int64_t grown)
{
    const kvb_decode_task *task = (const kvb_decode_task *)base;
    const kvb_cache *c = base->cache;
    int32_t code = kvb_plan_ready(&task->args, base->threads, grown, &task->plan);
    if (code || c->capacity == base->shape.capacity || task->args.variant != VARIANT_TWOPASS)
        return code;
    return most_rooms(task) <= task->rooms
               ? KVB_OK
               : kvb_fail(KVB_BAD_ARGUMENT,
                          "capacity changed, and the task has too few tiles for it");
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
        task->made[p] = kvb_made_of(a, kvb_plane_of(a->cache, p));
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
        size_t bytes = (size_t)(task->plan.partials * kvb_floats(LANES + task->v_pad));
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
    task->task.paces = true;
    task->task.stages = args->stages && args->variant != VARIANT_PERHEAD && !args->run;
    int32_t code = prepare(task);
    code = code ? code : kvb_traffic_decode(&task->args, &task->plan, &task->task.traffic);
    return kvb_task_made(&task->task, code, out);
}
