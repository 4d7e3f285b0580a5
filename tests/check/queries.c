/* Which arguments are refused for several queries, and for changes of scores. */
#include <math.h>
#include <string.h>

#include "check.h"

enum { Q_LEN = 3, Q_HEADS = 4, DIM = 24, BATCH = 3, COUNT = BATCH * Q_LEN * Q_HEADS * DIM };

/* Sequences with three queries, two and one: ends for any mask, ends only for a chain, and wrong
 * ends. */
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

static void check_scores(kvb_decode good)
{
    static const float infinite[] = {0.0f, INFINITY, -INFINITY, 0.0f},
                       none[] = {0.0f, 0.0f, 0.0f, NAN};
    kvb_task *task = NULL;
    const struct {
        kvb_decode asked;
        const char *name;
    } wrong[] = {
        {{.softcap = -30.0f}, "softcap"},
        {{.softcap = INFINITY}, "softcap"},
        {{.softcap = NAN}, "softcap"},
        {{.sink = infinite}, "sink[1]"},
        {{.sink = none}, "sink[3]"},
        {{.slope = infinite}, "slope[1]"},
        {{.slope = none}, "slope[3]"},
        {{.kept = -1, .window = 9}, "kept"},
        {{.kept = 4}, "kept is 4 and window is 0"},
        {{.kept = INT64_MAX, .window = 9}, "kept"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kvb_decode a = good;
        a.softcap = wrong[i].asked.softcap, a.sink = wrong[i].asked.sink;
        a.slope = wrong[i].asked.slope, a.kept = wrong[i].asked.kept;
        a.window = wrong[i].asked.window;
        const int32_t code = kvb_task_decode(&a, 1, &task);
        expect(code == KVB_BAD_ARGUMENT && strstr(kvb_message(), wrong[i].name),
               "bad %s: code %d, \"%s\"", wrong[i].name, code, kvb_message());
    }
}

void check_queries(void)
{
    rig r;
    float q[COUNT], out[COUNT];
    const kvb_cache shape = {.layout = word_of("layout", "head"),
                             .batch = BATCH,
                             .kv_heads = 2,
                             .head_dim = DIM,
                             .capacity = 700};
    if (!rig_open(&r, shape, 1))
        return;
    r.lengths[0] = 700, r.lengths[1] = 2, r.lengths[2] = 300;
    memset(q, 0, sizeof q);
    memset(out, 0x5a, sizeof out);
    kvb_decode args = {.cache = &r.cache,
                       .q = q,
                       .out = out,
                       .q_heads = Q_HEADS,
                       .q_len = Q_LEN,
                       .mask = KVB_MASK_TREE,
                       .ends = whole,
                       .tree = trees,
                       .isa = word_of("isa", "scalar")};
    check_refusals(args);
    check_scores(args);
    int64_t written = 0;
    for (size_t byte = 0; byte < sizeof out; byte++)
        written += ((uint8_t *)out)[byte] != 0x5a;
    expect(!written, "refused calls wrote %ld bytes", (long)written);
    expect(!run_decode(&args, 1), "several queries: %s", kvb_message());
    rig_close(&r);
}
