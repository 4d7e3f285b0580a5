/* Tasks on float32 matrices: transpose them, or copy a row of logits to its position. */
#include <string.h>

#include "store/store.h"

typedef struct matrix_task {
    kvb_task task;
    const kvb_tier *tier;
    const uint8_t *from;
    uint8_t *to;
    int64_t matrices;
    int64_t row;          /* bytes that stay together */
    int64_t outer, inner; /* transpose: [inner][outer] rows to [outer][inner] */
    int64_t rows;         /* logits: rows of each matrix */
    int64_t *position;
} matrix_task;

void kvb_copy(const kvb_tier *tier, uint8_t *to, const uint8_t *from, int64_t bytes)
{
    const int64_t lines = bytes / LINE * LINE;
    tier->copy(to, from, lines, 0);
    memcpy(to + lines, from + lines, (size_t)(bytes - lines));
}

/* Multiply all sizes to the bytes of a float32 array. Refuse a size below 1 and an overflow. */
static int32_t check_sizes(const char *const *names, const int64_t *sizes, int count,
                           int64_t *bytes)
{
    *bytes = sizeof(float);
    for (int i = 0; i < count; i++) {
        TRY(kvb_check_range(names[i], sizes[i], 1, INT64_MAX));
        if (__builtin_mul_overflow(*bytes, sizes[i], bytes))
            return kvb_fail(KVB_BAD_ARGUMENT, "%s %lld: the size overflows", names[i],
                            (long long)sizes[i]);
    }
    return KVB_OK;
}

static int32_t check_apart(const char *name, const void *from, int64_t from_bytes,
                           const char *to_name, const void *to, int64_t to_bytes)
{
    const uintptr_t a = (uintptr_t)from, b = (uintptr_t)to;
    if (a < b + (uintptr_t)to_bytes && b < a + (uintptr_t)from_bytes)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s overlaps %s; they are two buffers", to_name, name);
    return KVB_OK;
}

/* Make a task that reads `bytes` bytes and writes as many. */
static int32_t new_task(int32_t isa, int32_t threads, int64_t bytes, kvb_task **out,
                        matrix_task **made)
{
    TRY(kvb_check_isa(isa));
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_given("task", out));
    *made = kvb_task_new(sizeof **made, NULL, threads);
    if (!*made)
        return KVB_NO_MEMORY;
    const double both = 2.0 * (double)bytes;
    (*made)->tier = kvb_tier_of(isa);
    (*made)->task.traffic = (kvb_traffic){.compulsory = both, .issued = both, .line = both};
    *out = &(*made)->task;
    return KVB_OK;
}

/* ---- transpose ------------------------------------------------------------------------------- */

/* Do a thread's share of the target rows of all matrices, in address order. */
static void transpose(kvb_task *base, int32_t thread, void *scratch)
{
    const matrix_task *t = (const matrix_task *)base;
    const int64_t each = t->outer * t->inner, all = t->matrices * each;
    const int64_t end = all * (thread + 1) / base->threads;
    (void)scratch;
    for (int64_t at = all * thread / base->threads; at < end; at++) {
        const int64_t first = at / each * each, i = at % each / t->inner, j = at % t->inner;
        kvb_copy(t->tier, t->to + at * t->row, t->from + (first + j * t->outer + i) * t->row,
                 t->row);
    }
}

int32_t kvb_task_transpose(const float *from, float *to, int64_t matrices, int64_t rows,
                           int64_t heads, int64_t dim, int32_t to_head_major, int32_t isa,
                           int32_t threads, kvb_task **out)
{
    static const char *const names[] = {"matrices", "rows", "heads", "dim"};
    const int64_t sizes[] = {matrices, rows, heads, dim};
    int64_t bytes;
    matrix_task *task;
    TRY(kvb_check_given("from", from));
    TRY(kvb_check_given("to", to));
    TRY(check_sizes(names, sizes, 4, &bytes));
    TRY(kvb_check_range("to_head_major", to_head_major, 0, 1));
    TRY(check_apart("from", from, bytes, "to", to, bytes));
    TRY(new_task(isa, threads, bytes, out, &task));
    task->from = (const uint8_t *)from;
    task->to = (uint8_t *)to;
    task->matrices = matrices;
    task->outer = to_head_major ? heads : rows;
    task->inner = to_head_major ? rows : heads;
    task->row = dim * (int64_t)sizeof *to;
    task->task.work = transpose;
    return KVB_OK;
}

/* ---- logits ---------------------------------------------------------------------------------- */

/* Do a thread's share of the lines of each row. The last thread also copies the rest, which is less
 * than a line. */
static void logits(kvb_task *base, int32_t thread, void *scratch)
{
    const matrix_task *t = (const matrix_task *)base;
    const int64_t lines = t->row / LINE, at = lines * thread / base->threads * LINE;
    const int64_t end =
        thread + 1 < base->threads ? lines * (thread + 1) / base->threads * LINE : t->row;
    (void)scratch;
    for (int64_t i = 0; i < t->matrices; i++)
        kvb_copy(t->tier, t->to + (i * t->rows + *t->position) * t->row + at,
                 t->from + i * t->row + at, end - at);
}

static void next_position(kvb_task *base)
{
    const matrix_task *t = (const matrix_task *)base;
    *t->position = (*t->position + 1) % t->rows;
}

static int32_t ready(const kvb_task *base, int64_t grown)
{
    const matrix_task *t = (const matrix_task *)base;
    (void)grown;
    return kvb_check_range("position", *t->position, 0, t->rows - 1);
}

int32_t kvb_task_logits(const float *from, float *to, int64_t matrices, int64_t rows, int64_t width,
                        int64_t *position, int32_t isa, int32_t threads, kvb_task **out)
{
    static const char *const names[] = {"matrices", "width", "rows"};
    const int64_t sizes[] = {matrices, width, rows};
    int64_t bytes;
    matrix_task *task;
    TRY(kvb_check_given("from", from));
    TRY(kvb_check_given("to", to));
    TRY(kvb_check_given("position", position));
    TRY(check_sizes(names, sizes, 3, &bytes));
    TRY(kvb_check_range("position", *position, 0, rows - 1));
    TRY(check_apart("from", from, bytes / rows, "to", to, bytes));
    TRY(new_task(isa, threads, bytes / rows, out, &task));
    task->from = (const uint8_t *)from;
    task->to = (uint8_t *)to;
    task->matrices = matrices;
    task->row = width * (int64_t)sizeof *to;
    task->rows = rows;
    task->position = position;
    task->task.work = logits;
    task->task.count = next_position;
    task->task.ready = ready;
    return KVB_OK;
}
