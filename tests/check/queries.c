/* Several queries a step: which arguments are refused, and what a kernel of one's own is told of
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
    Q_LEN = 3,
    Q_HEADS = 4,
    KV_HEADS = 2,
    DIM = 24,
    BATCH = 3,
    CAPACITY = 700,
    COUNT = BATCH * Q_LEN * Q_HEADS * DIM
};

static const int64_t lengths[BATCH] = {700, 2, 300};

/* Of three queries, two and one; and what is wrong with a block, or a tree. */
static const int64_t whole[] = {700, 700, 700, 2, 2, 0, 300, 0, 0};
static const int64_t chained[] = {698, 3, 700, 1, 2, 0, 300, 0, 0};
static const int64_t beyond[] = {701, 0, 0, 0, 0, 0, 0, 0, 0};
static const int64_t below[] = {0, 0, 0, 0, 0, -1, 0, 0, 0};
static const uint32_t trees[] = {1, 3, 5, ~0u, 2, 7, 0, 6, 1};

static void check_refusals(kvb_decode good)
{
    kvb_task *task = NULL;
    const struct {
        int64_t q_len;
        int32_t mask;
        const int64_t *ends;
        const uint32_t *tree;
        const char *name;
    } wrong[] = {
        {-1, KVB_MASK_CHAIN, NULL, NULL, "q_len"},
        {33, KVB_MASK_CHAIN, NULL, NULL, "q_len"},
        {INT64_MAX, KVB_MASK_CHAIN, NULL, NULL, "q_len"},
        {Q_LEN, -1, NULL, NULL, "mask"},
        {Q_LEN, 3, NULL, trees, "mask"},
        {Q_LEN, KVB_MASK_TREE, NULL, NULL, "tree"},
        {Q_LEN, KVB_MASK_CHAIN, NULL, trees, "tree"},
        {Q_LEN, KVB_MASK_BLOCK, NULL, trees, "tree"},
        {Q_LEN, KVB_MASK_CHAIN, beyond, NULL, "ends[0]"},
        {Q_LEN, KVB_MASK_CHAIN, below, NULL, "ends[5]"},
        {Q_LEN, KVB_MASK_BLOCK, chained, NULL, "ends[0]"},
        {Q_LEN, KVB_MASK_TREE, chained, trees, "ends[0]"},
        {Q_LEN, KVB_MASK_TREE, below, trees, "ends[5]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kvb_decode a = good;
        a.q_len = wrong[i].q_len, a.mask = wrong[i].mask;
        a.ends = wrong[i].ends, a.tree = wrong[i].tree;
        const int32_t codes[] = {kvb_task_decode(&a, 1, &task), kvb_task_twin(&a, 1, &task),
                                 kvb_task_fill(&a, 1, 1, &task)};
        for (int c = 0; c < 3; c++)
            expect(codes[c] == KVB_BAD_ARGUMENT && strstr(kvb_message(), wrong[i].name),
                   "bad %s of several queries: code %d, \"%s\"", wrong[i].name, codes[c],
                   kvb_message());
    }
}

/* What kvb_work says of it. */
static bool attends(const kvb_work *w, int64_t query, int64_t token)
{
    const int64_t newest = w->cache->lengths[w->seq] - w->q_len;
    if (!w->ends)
        return true;
    if (token >= w->ends[query])
        return false;
    return w->mask != KVB_MASK_TREE || token < newest || w->tree[query] >> (token - newest) & 1;
}

static void one_state(const kvb_work *w, int64_t query, int64_t head, const float *q, int64_t state)
{
    const kvb_cache *c = w->cache;
    float *acc = w->acc + state * DIM, max = -INFINITY, sum = 0.0f;
    memset(acc, 0, DIM * sizeof *acc);
    for (int64_t t = w->first; t < w->first + w->count; t++) {
        if (!attends(w, query, t))
            continue;
        const int64_t at = w->seq * c->k.seq_stride + head * c->k.head_stride +
                           t * c->k.token_stride; /* K and V are alike */
        const float *k = (const float *)(const void *)(c->k.rows + at),
                    *v = (const float *)(const void *)(c->v.rows + at);
        float score = 0.0f;
        for (int d = 0; d < DIM; d++)
            score += w->scale * q[d] * k[d];
        const float top = fmaxf(max, score), shrink = expf(max - top), p = expf(score - top);
        for (int d = 0; d < DIM; d++)
            acc[d] = acc[d] * shrink + p * v[d];
        sum = sum * shrink + p, max = top;
    }
    w->max[state] = max, w->sum[state] = sum;
}

static void textbook(const kvb_work *w)
{
    for (int64_t query = 0; query < w->q_len; query++)
        for (int64_t i = 0; i < w->heads * w->group; i++)
            one_state(w, query, w->head + i / w->group, w->q + query * w->q_stride + i * DIM,
                      query * w->heads * w->group + i);
}

static void check_foreign_queries(kvb_decode args)
{
    static const struct {
        int32_t mask;
        const int64_t *ends;
        const uint32_t *tree;
    } asked[] = {{KVB_MASK_CHAIN, NULL, NULL}, {KVB_MASK_CHAIN, chained, NULL},
                 {KVB_MASK_BLOCK, NULL, NULL}, {KVB_MASK_BLOCK, whole, NULL},
                 {KVB_MASK_TREE, NULL, trees}, {KVB_MASK_TREE, whole, trees}};
    float right[COUNT], out[COUNT];
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        for (int32_t threads = 1; threads <= 7; threads += 3) {
            args.mask = asked[i].mask, args.ends = asked[i].ends, args.tree = asked[i].tree;
            args.run = NULL, args.out = right;
            expect(!run_decode(&args, 1), "several queries: %s", kvb_message());
            args.run = textbook, args.out = out, args.deterministic = threads == 4;
            memset(out, 0xff, sizeof out);
            expect(!run_decode(&args, threads), "queries of a plug-in: %s", kvb_message());
            expect(apart(out, right, COUNT) <= 2e-6 * 1.75,
                   "queries of a plug-in, mask %d on %d threads: error %.3g", args.mask, threads,
                   apart(out, right, COUNT));
            expect(!run_twin(&args, threads), "twin of a plug-in: %s", kvb_message());
        }
    args.wrap = 32;
    expect(!run_decode(&args, 2) && isfinite(out[0]), "queries, wrapped: %s", kvb_message());
    kvb_task *task = NULL;
    args.wrap = 0, args.window = 9;
    expect(kvb_task_decode(&args, 1, &task) == KVB_UNSUPPORTED && strstr(kvb_message(), "q_len"),
           "a plug-in is not told of windows: %s", kvb_message());
    args.q_len = 0, args.mask = KVB_MASK_CHAIN, args.ends = NULL, args.tree = NULL;
    expect(!run_decode(&args, 1), "one query with a window: %s", kvb_message());
}

void check_queries(void)
{
    float q[COUNT], out[COUNT];
    noise(q, COUNT, 31);
    for (int i = 0; i < 2; i++) {
        rig r;
        const kvb_cache shape = {.layout = word_of("layout", i ? "position" : "head"),
                                 .batch = BATCH,
                                 .kv_heads = KV_HEADS,
                                 .head_dim = DIM,
                                 .capacity = CAPACITY};
        if (!rig_open(&r, shape, 1))
            return;
        noise((float *)(void *)r.cache.k.rows, r.cache.bytes / (int64_t)sizeof(float), 32);
        memcpy(r.lengths, lengths, sizeof lengths);
        kvb_decode args = {.cache = &r.cache,
                           .q = q,
                           .out = out,
                           .q_heads = Q_HEADS,
                           .q_len = Q_LEN,
                           .isa = word_of("isa", "scalar")};
        memset(out, 0x5a, sizeof out);
        check_refusals(args);
        int64_t written = 0;
        for (size_t byte = 0; byte < sizeof out; byte++)
            written += ((uint8_t *)out)[byte] != 0x5a;
        expect(!written, "refused calls wrote %ld bytes", (long)written);
        check_foreign_queries(args);
        rig_close(&r);
    }
}
