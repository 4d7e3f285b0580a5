/* Bytes and FLOPs, each counted once and here. Buffers count as if each began on a line. */
#include <stdlib.h>
#include <string.h>

#include "base/core.h"

/* What one pass touches of a cache: the rows of a decode, or those of a store. */
typedef struct touched {
    const kvb_cache *cache;
    const kvb_decode *decode; /* one of the two is null */
    const kvb_store *store;
} touched;

/* Tokens of a sequence, from `first` to before `end`. A ring keeps the last ones that it is given. */
static void tokens_of(const touched *t, int64_t seq, int64_t *first, int64_t *end)
{
    if (t->decode) {
        kvb_attended(t->decode, seq, first, end);
        return;
    }
    *end = t->cache->lengths[seq] + t->store->tokens;
    *first = *end - (t->cache->ring ? at_most(t->store->tokens, t->cache->capacity) : t->store->tokens);
}

/* Tokens of all sequences together. */
static double attended(const touched *t)
{
    double tokens = 0.0;
    for (int64_t b = 0; b < t->cache->batch; b++) {
        int64_t first, end;
        tokens_of(t, b, &first, &end);
        tokens += (double)(end - first);
    }
    return tokens;
}

static double scale_bytes(const kvb_cache *c) { return kvb_formats[c->dtype].scaled ? kvb_scale_bytes[c->scale] : 0; }

static double payload(const kvb_cache *c) { return (double)kvb_payload(c->dtype, c->head_dim); }

static bool packed(const kvb_cache *c) { return kvb_formats[c->dtype].elements > 1; }

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* Lines of bytes from .. to that no earlier call has counted. Calls go upwards; `next` starts as 0. */
static double lines_on(int64_t from, int64_t to, int64_t *next)
{
    int64_t first = at_least(*next, from / LINE), end = (to + LINE - 1) / LINE;
    if (from >= to || end <= first)
        return 0.0;
    *next = end;
    return (double)(end - first);
}

/* Lines of a buffer that is walked as a whole. */
static double lines_in(double bytes) { return (double)(((int64_t)bytes + LINE - 1) / LINE); }

/* Mark the lines of a plane that one sequence and KV head touches: of rows, or of scales, of so many bytes. */
static void mark(const touched *t, int64_t seq, int64_t head, bool of_scales, int64_t bytes, uint8_t *marks)
{
    int64_t first, end, rows[TILE], scales[TILE];
    const int64_t *from = of_scales ? scales : rows;
    tokens_of(t, seq, &first, &end);
    for (int64_t at = first; at < end; at += TILE) {
        int64_t count = at_most(TILE, end - at);
        kvb_offsets(t->cache, seq, head, at, count, rows, scales);
        for (int64_t i = 0; i < count; i++)
            for (int64_t line = from[i] / LINE; rows[i] >= 0 && line * LINE < from[i] + bytes; line++)
                marks[line] = 1;
    }
}

/* Lines of one plane of scales or of packed rows. Neighbours share them, whichever head, block or sequence they are of,
 * and blocks lie in any order: so each is marked. */
static int32_t shared_lines(const touched *t, bool of_scales, double *lines)
{
    const kvb_cache *c = t->cache;
    int64_t all = (of_scales ? c->scale_plane_bytes : c->plane_bytes) / LINE;
    int64_t bytes = of_scales ? (int64_t)scale_bytes(c) : c->row_bytes;
    uint8_t *marks = calloc((size_t)all, 1);
    *lines = 0.0;
    if (!marks)
        return kvb_fail(KVB_NO_MEMORY, "no memory to count lines");
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->kv_heads; h++)
            mark(t, b, h, of_scales, bytes, marks);
    for (int64_t i = 0; i < all; i++)
        *lines += marks[i];
    free(marks);
    return KVB_OK;
}

/* ---- blocks of K that is transposed ----------------------------------------------------------------------------- */

/* All of a pass. */
static double blocks(const touched *t)
{
    int64_t count = 0;
    for (int64_t b = 0; b < t->cache->batch; b++) {
        int64_t first, end;
        tokens_of(t, b, &first, &end);
        count += t->cache->kv_heads * kvb_blocks_of(t->cache, first, end);
    }
    return (double)count;
}

/* Rows of K that one walk loads: all tokens of a block. */
static double k_rows(const touched *t, double rows)
{
    return kvb_layouts[t->cache->layout].transposed ? blocks(t) * LANES : rows;
}

/* Lines of `rows` rows of each side, and of their scales. Blocks of transposed K are read but for cells of padding,
 * which are behind all others; and stored whole. */
static int32_t lines_of(const touched *t, double rows, double *lines)
{
    const kvb_cache *c = t->cache;
    double of_rows = rows * (double)(c->row_bytes / LINE), of_scales = 0.0;
    int32_t code = packed(c) ? shared_lines(t, false, &of_rows) : KVB_OK;
    if (!code && kvb_formats[c->dtype].scaled)
        code = shared_lines(t, true, &of_scales);
    *lines = 2.0 * (of_rows + of_scales);
    if (kvb_layouts[c->layout].transposed)
        *lines += blocks(t) * (double)(t->decode ? kvb_block_bytes(c) : LANES * c->row_bytes) / LINE - of_rows;
    return code;
}

/* ---- the page table --------------------------------------------------------------------------------------------- */

/* Entries of slots first .. end of one sequence, and their lines. */
static double entries(const kvb_cache *c, int64_t seq, int64_t first, int64_t end, int64_t *next, double *lines)
{
    if (end <= first)
        return 0.0;
    int64_t from = seq * c->table_stride + first / c->block_tokens;
    int64_t to = seq * c->table_stride + (end - 1) / c->block_tokens + 1;
    *lines += lines_on(from * (int64_t)sizeof *c->table, to * (int64_t)sizeof *c->table, next);
    return (double)(to - from);
}

/* Bytes of the entries that a decode needs, and the lines they lie in. */
static double table_bytes(const touched *t, double *lines)
{
    const kvb_cache *c = t->cache;
    double count = 0.0;
    int64_t next = 0;
    *lines = 0.0;
    for (int64_t b = 0; kvb_layouts[c->layout].paged && b < c->batch; b++) {
        int64_t first, end;
        tokens_of(t, b, &first, &end);
        int64_t slot = c->ring ? first % c->capacity : first, last = slot + end - first;
        int64_t wrapped = at_least(0, last - c->capacity); /* slots at the front of a ring */
        int64_t joint = wrapped && (wrapped - 1) / c->block_tokens == slot / c->block_tokens;
        count += entries(c, b, 0, wrapped, &next, lines) - (double)joint;
        count += entries(c, b, slot, at_most(last, c->capacity), &next, lines);
    }
    return count * sizeof *c->table;
}

/* ---- decode and its twin ---------------------------------------------------------------------------------------- */

static int32_t count_rows(const kvb_decode *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const touched all = {.cache = c, .decode = a};
    double rows = attended(&all) * (double)c->kv_heads, of_rows, of_table;
    int32_t code = lines_of(&all, rows, &of_rows);
    *t = (kvb_traffic){.kv = 2.0 * rows * payload(c), .scales = 2.0 * rows * scale_bytes(c)};
    t->table = table_bytes(&all, &of_table);
    t->line = LINE * (of_rows + of_table);
    return code;
}

int32_t kvb_traffic_twin(const kvb_decode *a, kvb_traffic *t)
{
    const touched all = {.cache = a->cache, .decode = a};
    double rows = attended(&all) * (double)a->cache->kv_heads;
    int32_t code = count_rows(a, t);
    t->compulsory = t->kv + t->scales + t->table;
    t->issued = t->compulsory + (k_rows(&all, rows) - rows) * payload(a->cache);
    return code;
}

int32_t kvb_traffic_decode(const kvb_decode *a, const kvb_plan *plan, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const touched all = {.cache = c, .decode = a};
    double vector = (double)(c->batch * a->q_heads * c->head_dim); /* elements of q, and of out */
    int32_t code = count_rows(a, t);
    t->flops = 4.0 * attended(&all) * (double)(a->q_heads * c->head_dim);
    t->compulsory = t->kv + t->scales + t->table + 2.0 * vector * sizeof *a->q;
    double rows = attended(&all) * (double)c->kv_heads;
    t->issued = t->compulsory;
    if (!a->run) /* nobody knows what a plug-in loads */
        t->issued += (k_rows(&all, rows) * kvb_loads(a, true) + rows * kvb_loads(a, false)) * payload(c) - t->kv +
                     kvb_scale_loads(a, plan, rows) * scale_bytes(c) - t->scales;
    t->line += 2.0 * LINE * lines_in(vector * sizeof *a->q);
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
    return code;
}

/* ---- stores ----------------------------------------------------------------------------------------------------- */

/* How many of a sequence's tokens first .. end are kept, which the table may leave out; kept[i]: whether first + i is. */
static int64_t kept_tokens(const kvb_cache *c, int64_t seq, int64_t first, int64_t end, uint8_t *kept)
{
    int64_t row, count = 0;
    for (int64_t i = 0; i < end - first; i++) {
        kvb_offsets(c, seq, 0, first + i, 1, &row, NULL);
        kept[i] = row >= 0;
        count += kept[i];
    }
    return count;
}

/* Lines of the source rows of the last `count` tokens of one sequence, in the order in which they lie. */
static double source_lines(const kvb_store *a, int64_t seq, const uint8_t *kept, int64_t count, int64_t *next)
{
    int64_t turns = a->head_major ? a->cache->kv_heads : 1;
    int64_t bytes = a->cache->kv_heads / turns * a->cache->head_dim * (int64_t)sizeof *a->k;
    double lines = 0.0;
    for (int64_t turn = 0; turn < turns; turn++)
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (seq * turns + turn + 1) * a->tokens - count + i;
            if (kept[i])
                lines += lines_on(at * bytes, (at + 1) * bytes, next);
        }
    return lines;
}

/* Stores count the rows that they keep, and what those are made from; padding is in `issued` and `line`. */
int32_t kvb_traffic_store(const kvb_store *a, kvb_traffic *t)
{
    const kvb_cache *c = a->cache;
    const touched all = {.cache = c, .store = a};
    double rows = 0.0, of_source = 0.0, of_rows;
    double reads = kvb_formats[c->dtype].scaled || packed(c) ? 2.0 : 1.0; /* for scales, and for codes */
    int64_t next = 0;
    uint8_t *kept = malloc((size_t)at_most(a->tokens, c->capacity));
    if (!kept)
        return kvb_fail(KVB_NO_MEMORY, "no memory to count %lld tokens", (long long)a->tokens);
    for (int64_t b = 0, first, end; b < c->batch; b++) {
        tokens_of(&all, b, &first, &end);
        rows += (double)(kept_tokens(c, b, first, end, kept) * c->kv_heads);
        of_source += source_lines(a, b, kept, end - first, &next);
    }
    free(kept);
    int32_t code = lines_of(&all, rows, &of_rows);
    double source = 2.0 * rows * (double)c->head_dim * sizeof *a->k;
    *t = (kvb_traffic){.kv = 2.0 * rows * payload(c), .scales = 2.0 * rows * scale_bytes(c)};
    t->compulsory = t->kv + t->scales + source;
    t->issued = 2.0 * rows * (double)c->row_bytes + t->scales + reads * source;
    t->line = LINE * (of_rows + 2.0 * of_source);
    return code;
}

/* ---- probes ----------------------------------------------------------------------------------------------------- */

void kvb_traffic_probe(const kvb_probe *a, kvb_traffic *t)
{
    static const int streams[OPS] = {[OP_READ] = 1, [OP_WRITE] = 1, [OP_WRITE_NT] = 1, [OP_COPY] = 2, [OP_COPY_NT] = 2,
                                     [OP_TRIAD] = 3};
    double sweeps = (double)at_least(1, a->steps);
    *t = (kvb_traffic){0};
    t->compulsory = t->issued = t->line = streams[a->op] * sweeps * (double)a->bytes;
    if (a->op == OP_TRIAD)
        t->flops = 2.0 * sweeps * (double)a->bytes / sizeof(float);
    if (a->op == OP_LATENCY) {
        t->issued = (double)a->steps * sizeof(void *);
        t->line = (double)a->steps * LINE;
    }
    t->ai = t->compulsory > 0.0 ? t->flops / t->compulsory : 0.0;
}
