/* Rows into a cache: append and bulk. */
#include "store/store.h"

/* Tokens taken together: token-major sources are then read in order, and a head's rows written side
 * by side. */
enum { TOGETHER = 16 };

typedef struct store_task {
    kvb_task task;
    kvb_store args;
} store_task;

/* x / scale in float32, as others do it: times 1 / scale would round some elements to another code.
 */
void kvb_encode_rows(int32_t isa, int32_t dtype, float tensor, const kvb_encode *rows)
{
    void (*encode)(const kvb_encode *) = kvb_tier_of(isa)->rows[dtype].encode;
    if (kvb_tensor(tensor) == 1.0f) {
        encode(rows);
        return;
    }
    _Alignas(LINE) float divided[DIM_MAX];
    for (int64_t r = 0; r < rows->rows; r++) {
        kvb_encode one = *rows;
        for (int64_t d = 0; d < rows->dim; d++)
            divided[d] = rows->from[r * rows->from_stride + d] / tensor;
        one.from = divided;
        one.to += r * rows->to_stride;
        one.rows = 1;
        encode(&one);
    }
}

/* Tokens of a pass that are written: a ring keeps the last `capacity` of them, nothing else runs
 * past its end. */
static int64_t stored(const kvb_store *a, int64_t seq)
{
    const kvb_cache *c = a->cache;
    return at_most(a->tokens, c->ring ? c->capacity : at_least(0, c->capacity - c->lengths[seq]));
}

/* How many of the rows lie one token stride apart; or are all left out by the table. */
static int64_t run_of(const int64_t *rows, int64_t count, int64_t token_stride)
{
    int64_t n = 1;
    while (n < count && rows[n] == (rows[0] < 0 ? rows[0] : rows[0] + n * token_stride))
        n++;
    return n;
}

/* One run of rows, K and then V, whose first lies at `row` of a plane and at element `from` of the
 * source. K goes `beside` the cache where that is not null. */
static void store_run(const kvb_store *a, kvb_encode run, int64_t row, int64_t scale, int64_t from,
                      uint8_t *beside)
{
    const kvb_cache *c = a->cache;
    const int64_t to_stride = run.to_stride;
    run.from = a->k + from;
    run.scale = c->k.scales + scale;
    run.to = beside ? beside : c->k.rows + row;
    if (beside)
        run.to_stride = a->head_major ? run.row_bytes : LANES * run.row_bytes;
    run.nt = a->nt && !beside;
    kvb_encode_rows(a->isa, c->k.dtype, c->k.tensor, &run);
    run.from = a->v + from;
    run.scale = c->v.scales + scale;
    run.to = c->v.rows + row;
    run.to_stride = to_stride;
    run.nt = a->nt;
    kvb_encode_rows(a->isa, c->k.dtype, c->v.tensor, &run);
}

/* Source tokens first .. first + count of one sequence and `heads` KV heads, in the order of the
 * source: runs of tokens of a head, or of heads of a token. Reads then follow one stream.
 * Transposed K is encoded beside the cache, LANES tokens of each of as many heads as have room, and
 * then laid into their blocks. */
static void store_block(const kvb_store *a, int64_t seq, int64_t head, int64_t heads, int64_t first,
                        int64_t count, uint8_t *beside)
{
    const kvb_cache *c = a->cache;
    const bool transposed = kvb_layouts[c->layout].transposed, by_head = a->head_major;
    const int64_t dim = c->head_dim, row = c->k.row_bytes,
                  fits = transposed ? DIM_MAX * 4 / row : heads;
    const int64_t to_token = by_head ? dim : c->kv_heads * dim,
                  to_head = by_head ? a->tokens * dim : dim;
    int64_t rows[TOGETHER], scales[TOGETHER];
    kvb_encode run = {.from_stride = dim,
                      .to_stride = by_head ? c->k.token_stride : c->k.head_stride,
                      .scale_stride = by_head ? c->k.scale_token_stride : c->k.scale_head_stride,
                      .scale_dtype = c->k.scale,
                      .dim = dim,
                      .row_bytes = row};
    kvb_offsets(c, seq, 0, c->lengths[seq] + first, count, rows, scales);
    for (int64_t at = 0, n, some; at < count; at += n) {
        const int64_t lane = kvb_lane(c, c->lengths[seq] + first + at);
        n = by_head || transposed ? run_of(rows + at, count - at, c->k.token_stride) : 1;
        n = transposed ? at_most(n, LANES - lane) : n;
        for (int64_t h = head; rows[at] >= 0 && h < head + heads; h += some) {
            some = by_head ? 1 : at_most(fits, head + heads - h);
            run.rows = by_head ? n : some;
            for (int64_t t = at; t < at + n; t += by_head ? n : 1)
                store_run(
                    a, run, rows[t] + h * c->k.head_stride, scales[t] + h * c->k.scale_head_stride,
                    seq * a->tokens * c->kv_heads * dim + (first + t) * to_token + h * to_head,
                    transposed ? beside + (t - at) * row : NULL);
            for (int64_t i = 0; transposed && i < some; i++)
                kvb_lay_rows(c->k.dtype, beside + i * LANES * row, row, n, lane, a->nt,
                             c->k.rows + (h + i) * c->k.head_stride + rows[at]);
        }
    }
}

/* Source tokens in front of those that a ring keeps. */
static int64_t skipped_of(const kvb_store *a, int64_t tokens)
{
    return a->cache->ring ? a->tokens - tokens : 0;
}

/* Blocks that a sequence's tokens are taken in, at most; they begin where those of transposed K do.
 */
static int64_t most_blocks(const kvb_store *a)
{
    const kvb_cache *c = a->cache;
    int64_t most = (at_most(a->tokens, c->capacity) + TOGETHER - 1) / TOGETHER;
    for (int64_t seq = 0; kvb_layouts[c->layout].transposed && seq < c->batch; seq++) {
        int64_t tokens = stored(a, seq),
                lead = kvb_lane(c, c->lengths[seq] + skipped_of(a, tokens));
        most = at_least(most, (lead + tokens + TOGETHER - 1) / TOGETHER);
    }
    return most;
}

/* Units are (sequence, block, heads): all heads of a token-major source, unless there are too few
 * blocks for the threads. A thread takes a stretch of units. Where K is transposed, blocks are
 * those of the cache. */
static void work(kvb_task *base, int32_t thread, void *scratch)
{
    const kvb_store *a = &((store_task *)base)->args;
    const kvb_cache *c = a->cache;
    int64_t blocks = most_blocks(a);
    int64_t heads = a->head_major || c->batch * blocks < base->threads ? 1 : c->kv_heads,
            parts = c->kv_heads / heads;
    int64_t units = c->batch * blocks * parts;
    for (int64_t u = units * thread / base->threads; u < units * (thread + 1) / base->threads;
         u++) {
        int64_t seq = u / (blocks * parts), in = u % (blocks * parts);
        int64_t head = a->head_major ? in / blocks : in % parts,
                block = a->head_major ? in % blocks : in / parts;
        int64_t tokens = stored(a, seq), skipped = skipped_of(a, tokens);
        int64_t lead = kvb_lane(c, c->lengths[seq] + skipped),
                first = at_least(0, block * TOGETHER - lead);
        int64_t count = at_most((block + 1) * TOGETHER - lead, tokens) - first;
        if (count > 0)
            store_block(a, seq, head, heads, skipped + first, count, scratch);
    }
}

static void advance(kvb_task *base)
{
    const kvb_store *a = &((store_task *)base)->args;
    for (int64_t seq = 0; seq < a->cache->batch; seq++)
        a->cache->lengths[seq] += a->cache->ring ? a->tokens : stored(a, seq);
}

static int32_t check(const kvb_store *a, int32_t threads)
{
    TRY(kvb_check_given("store arguments", a));
    TRY(kvb_check_threads(threads));
    TRY(kvb_check_cache(a->cache));
    TRY(kvb_check_given("k", a->k));
    TRY(kvb_check_given("v", a->v));
    TRY(kvb_check_range("tokens", a->tokens, 1, tokens_max));
    TRY(kvb_check_range("head_major", a->head_major, 0, 1));
    TRY(kvb_check_range("nt", a->nt, 0, 1));
    TRY(kvb_check_range("advance", a->advance, 0, 1));
    TRY(kvb_check_isa(a->isa));
    const kvb_cache *c = a->cache;
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t end = c->lengths[b] + a->tokens;
        if (end > (c->ring ? tokens_max : c->capacity))
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "tokens: sequence %lld would hold %lld of capacity %lld", (long long)b,
                            (long long)end, (long long)c->capacity);
        if (kvb_layouts[c->layout].paged)
            TRY(kvb_check_table(
                c, b, c->ring ? at_least(c->lengths[b], end - c->capacity) : c->lengths[b], end,
                -1));
    }
    return KVB_OK;
}

/* Lengths and tables may have changed since the task was planned, and its last pass is behind what
 * the run adds. */
static int32_t ready(const kvb_task *base, int64_t grown)
{
    kvb_store all = ((const store_task *)base)->args;
    all.tokens += grown;
    return check(&all, base->threads);
}

int32_t kvb_task_bulk(const kvb_store *args, int32_t threads, kvb_task **out)
{
    TRY(check(args, threads));
    TRY(kvb_check_given("task", out));
    store_task *task = kvb_task_new(sizeof *task, args->cache, threads);
    if (!task)
        return KVB_NO_MEMORY;
    task->args = *args;
    task->task.advance = args->advance ? args->tokens : 0;
    task->task.ready = ready;
    task->task.work = work;
    task->task.scratch_bytes = LANES * DIM_MAX * (int64_t)sizeof(float);
    task->task.count = args->advance ? advance : NULL;
    return kvb_task_made(&task->task, kvb_traffic_store(args, &task->task.traffic), out);
}

int32_t kvb_task_append(const kvb_store *args, int32_t threads, kvb_task **out)
{
    if (args)
        TRY(kvb_check_range("tokens", args->tokens, 1, 1));
    return kvb_task_bulk(args, threads, out);
}
