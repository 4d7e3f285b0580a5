/* append and bulk: store rows into a cache. */
#include "store/store.h"

/* Tokens that are taken together. So token-major sources are read in order, and several rows of a
 * head are written side by side. */
enum { TOGETHER = 16 };

typedef struct store_task {
    kvb_task task;
    kvb_store args;
} store_task;

/* Divide a row by the scales of channels, or by that of the tensor if `channel` is null. Other
 * libraries divide in float32, too: multiplying by 1 / scale would round some elements to another
 * code. */
static void divide(const float *restrict from, int64_t dim, const float *restrict channel,
                   float tensor, float *restrict to)
{
    for (int64_t d = 0; channel && d < dim; d++)
        to[d] = from[d] / channel[d];
    for (int64_t d = 0; !channel && d < dim; d++)
        to[d] = from[d] / tensor;
}

/* Divided rows are encoded in as few calls as the buffer allows: a call ends its streams. */
void kvb_encode_rows(int32_t isa, const kvb_plane *plane, int64_t head, bool of_one,
                     const kvb_encode *rows)
{
    void (*encode)(const kvb_encode *) = kvb_tier_of(isa)->codecs[plane->dtype].encode;
    const float tensor = kvb_tensor(plane->tensor);
    if (!plane->channel && tensor == 1.0f) {
        encode(rows);
        return;
    }
    _Alignas(LINE) float divided[DIM_MAX];
    kvb_encode some = *rows;
    some.from = divided;
    some.from_stride = plane->dim;
    for (int64_t done = 0; done < rows->count; done += some.count) {
        some.count = at_most(DIM_MAX / plane->dim, rows->count - done);
        some.to = rows->to + done * rows->to_stride;
        for (int64_t r = 0; r < some.count; r++) {
            const int64_t own = of_one ? head : head + done + r;
            divide(rows->from + (done + r) * rows->from_stride, plane->dim,
                   plane->channel ? plane->channel + own * plane->dim : NULL, tensor,
                   divided + r * plane->dim);
        }
        encode(&some);
    }
}

/* Return how many tokens of a pass are written. A ring keeps only the last `capacity` of them;
 * other caches are not stored past their end. */
static int64_t stored(const kvb_store *a, int64_t seq)
{
    const kvb_cache *c = a->cache;
    return at_most(a->tokens, c->ring ? c->capacity : at_least(0, c->capacity - c->lengths[seq]));
}

/* Return how many rows from the first on are one token stride apart, or are all left out by the
 * table. */
static int64_t run_of(const int64_t *rows, int64_t count, int64_t token_stride)
{
    int64_t n = 1;
    while (n < count && rows[n] == (rows[0] < 0 ? rows[0] : rows[0] + n * token_stride))
        n++;
    return n;
}

/* The rows of a source that are stored into a plane. */
typedef struct inflow {
    const kvb_plane *plane;
    const float *source;
    int64_t to_token, to_head; /* floats of the source from a row to the next token's, or head's */
    /* [TOGETHER], offsets of the first head in the plane: `own`, or those of a plane that is alike
     */
    const int64_t *rows, *scales;
    int64_t own_rows[TOGETHER], own_scales[TOGETHER];
    kvb_encode run;
} inflow;

/* Begin with tokens from `token` of a sequence on. `other`: the inflow of an alike plane, or null.
 */
static void start(const kvb_store *a, const kvb_plane *p, const float *source, int64_t seq,
                  int64_t token, int64_t count, const inflow *other, inflow *w)
{
    const bool by_head = a->head_major;
    w->plane = p;
    w->source = source + seq * a->tokens * a->cache->kv_heads * p->dim;
    w->to_token = by_head ? p->dim : a->cache->kv_heads * p->dim;
    w->to_head = by_head ? a->tokens * p->dim : p->dim;
    w->rows = other ? other->rows : w->own_rows;
    w->scales = other ? other->scales : w->own_scales;
    if (!other)
        kvb_offsets(a->cache, p, seq, 0, token, count, w->own_rows, w->own_scales);
    w->run = (kvb_encode){
        .from_stride = p->dim,
        .to_stride = p->cell   ? (by_head ? p->row_bytes : LANES * p->row_bytes)
                     : by_head ? p->token_stride
                               : p->head_stride,
        .scale_stride = by_head ? p->scale_token_stride : p->scale_head_stride,
        .scale_dtype = p->scale,
        .dim = p->dim,
        .row_bytes = p->row_bytes,
        .nt = a->nt && !p->cell,
    };
}

/* Store one run of rows. The first one is of KV head `head` and of token `at` of those taken
 * together, which is `token` of the source's sequence. Rows go to `beside` if it is not null, else
 * to the cache. */
static void store_run(const kvb_store *a, inflow *w, int64_t at, int64_t token, int64_t head,
                      uint8_t *beside)
{
    const kvb_plane *p = w->plane;
    kvb_encode *run = &w->run; /* changed in place: copying it takes a tenth of a row's time */
    run->from = w->source + token * w->to_token + head * w->to_head;
    run->scale = kvb_scaled(p) ? p->scales + w->scales[at] + head * p->scale_head_stride : NULL;
    run->to = beside ? beside : p->rows + w->rows[at] + head * p->head_stride;
    kvb_encode_rows(a->isa, p, head, a->head_major, run);
}

/* Store tokens at .. at + n of those taken together, for `heads` KV heads from `head` on. Rows of a
 * transposed plane are encoded beside the cache, LANES tokens of each head, and then laid into
 * their blocks. */
static void store_some(const kvb_store *a, inflow in[PLANES], int64_t seq, int64_t first,
                       int64_t at, int64_t n, int64_t head, int64_t heads, uint8_t *beside)
{
    const int64_t step = a->head_major ? n : 1;
    for (inflow *w = in; w < in + PLANES; w++) {
        const kvb_plane *p = w->plane;
        w->run.count = a->head_major ? n : heads;
        for (int64_t t = at; t < at + n; t += step)
            store_run(a, w, t, first + t, head, p->cell ? beside + (t - at) * p->row_bytes : NULL);
        for (int64_t i = 0; p->cell && i < heads; i++)
            kvb_lay_rows(p, beside + i * LANES * p->row_bytes, n,
                         kvb_lane(a->cache, a->cache->lengths[seq] + first + at), a->nt,
                         p->rows + (head + i) * p->head_stride + w->rows[at]);
    }
}

/* Store source tokens first .. first + count of one sequence and `heads` KV heads, in the order of
 * the source: runs of tokens of a head, or of heads of a token. So reads follow one stream. */
static void store_block(const kvb_store *a, int64_t seq, int64_t head, int64_t heads, int64_t first,
                        int64_t count, uint8_t *beside)
{
    const kvb_cache *c = a->cache;
    const bool transposed = kvb_layouts[c->layout].transposed, by_head = a->head_major;
    const int64_t row = at_least(c->k.row_bytes, c->v.row_bytes);
    const int64_t fits = transposed ? DIM_MAX * 4 / row : heads;
    const int64_t token = c->lengths[seq] + first;
    inflow in[PLANES], *k = &in[KVB_K], *v = &in[KVB_V];
    start(a, &c->v, a->v, seq, token, count, NULL, v);
    start(a, &c->k, a->k, seq, token, count, kvb_planes_alike(c) ? v : NULL, k);
    for (int64_t at = 0, n, some; at < count; at += n) {
        n = by_head || transposed ? run_of(k->rows + at, count - at, c->k.token_stride) : 1;
        if (transposed)
            n = at_most(n, LANES - kvb_lane(c, token + at));
        for (int64_t h = head; k->rows[at] >= 0 && h < head + heads; h += some) {
            some = by_head ? 1 : at_most(fits, head + heads - h);
            store_some(a, in, seq, first, at, n, h, some, beside);
        }
    }
}

/* Return how many source tokens come before those that a ring keeps. */
static int64_t skipped_of(const kvb_store *a, int64_t tokens)
{
    return a->cache->ring ? a->tokens - tokens : 0;
}

/* Return the most blocks in which a sequence's tokens are taken. They begin where blocks of
 * transposed planes begin. */
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

/* Do a thread's consecutive units. A unit is (sequence, block, heads). It has all heads of a
 * token-major source, unless there are too few blocks for the threads. If K is transposed, blocks
 * are those of the cache. */
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

/* Check the task before a run: lengths and table may have changed, and its last pass comes after
 * the tokens that the run adds. */
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
