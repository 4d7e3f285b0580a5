/* Deterministic mode gives the same bits for any number of threads. Every tier gives the same
 * numbers as the scalar tier; case files and the documented plug-in compare that one with others.
 */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
    Q_HEADS = 6,
    KV_HEADS = 2,
    DIM = 48,
    V_DIM = 56, /* if K and V differ */
    BATCH = 2,
    CAPACITY = 2600,
    MOST = BATCH * Q_HEADS * V_DIM
};

static void check_tier(const rig *r, const float *q, int64_t window, int32_t isa)
{
    enum { SCHEDULES = 4 };
    static const int32_t teams[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 16};
    float out[MOST], first[SCHEDULES][MOST], right[MOST];
    const int64_t count = BATCH * Q_HEADS * r->cache.v.dim;
    for (int32_t variant = 0; kvb_word("variant", variant); variant++) {
        if (!has_kernel(variant, &r->cache, isa))
            continue;
        const int32_t k = r->cache.k.dtype;
        const bool rounds = kvb_levels(variant, k, 0) || kvb_levels(variant, k, 3);
        const double most = rounds ? 5e-3 : 2e-6 * 1.75; /* weights are rounded to 8 bits */
        kvb_decode args = {.cache = &r->cache,
                           .q = q,
                           .out = right,
                           .q_heads = Q_HEADS,
                           .window = window,
                           .variant = variant,
                           .isa = word_of("isa", "scalar")};
        expect(!run_decode(&args, 1), "decode: %s", kvb_message());
        args.out = out, args.isa = isa;
        for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
            const int32_t threads = teams[t];
            args.schedule = threads % SCHEDULES;
            for (args.deterministic = 0; args.deterministic < 2; args.deterministic++) {
                memset(out, 0xff, sizeof out);
                if (!expect(!run_decode(&args, threads), "decode on %d threads: %s", threads,
                            kvb_message()))
                    return;
                expect(apart(out, right, count) <= most, "%s %s on %d threads: error %.3g",
                       kvb_word("isa", isa), kvb_word("variant", variant), threads,
                       apart(out, right, count));
            }
            if (threads <= SCHEDULES) /* each schedule may cut tiles differently */
                memcpy(first[args.schedule], out, (size_t)count * sizeof *out);
            expect(!memcmp(first[args.schedule], out, (size_t)count * sizeof *out),
                   "%s %s: %d threads give other bits than %d", kvb_word("isa", isa),
                   kvb_word("variant", variant), threads, threads % SCHEDULES);
        }
    }
}

/* Rows are rounded the same, whatever rounding the caller uses when it opens a team. */
static void check_rounding(const float *source)
{
    enum { TOKENS = 20 };
    rig r;
    kvb_cache shape = {PLANES(word_of("dtype", "bf16"), 0), .batch = 1, .kv_heads = 1,
                       .head_dim = DIM, .capacity = TOKENS};
    if (!rig_open(&r, shape, 1))
        return;
    float out[2][DIM];
    kvb_store put = {
        .cache = &r.cache, .k = source, .v = source, .tokens = TOKENS, .isa = tiers[0]};
    for (int i = 0; i < 2; i++) {
        kvb_decode args = {
            .cache = &r.cache, .q = source, .out = out[i], .q_heads = 1, .isa = tiers[0]};
        teams_close();
        fesetround(i ? FE_UPWARD : FE_TONEAREST);
        r.lengths[0] = 0;
        expect(!run_bulk(&put, 1), "bulk: %s", kvb_message());
        fesetround(FE_TONEAREST);
        r.lengths[0] = TOKENS;
        expect(!run_decode(&args, 1), "decode: %s", kvb_message());
    }
    expect(!memcmp(out[0], out[1], sizeof out[0]),
           "a team's threads round as the one who opened it");
    rig_close(&r);
}

/* If K and V have two dtypes, V also has another width. */
static void check_layout(int32_t layout, const char *k_dtype, const char *v_dtype,
                         const float *const source[3])
{
    rig r;
    kvb_cache shape = {.layout = layout,
                       .k.dtype = word_of("dtype", k_dtype),
                       .v.dtype = word_of("dtype", v_dtype),
                       .batch = BATCH,
                       .kv_heads = KV_HEADS,
                       .head_dim = DIM,
                       .v_dim = strcmp(k_dtype, v_dtype) ? V_DIM : DIM,
                       .capacity = CAPACITY,
                       .block_tokens = 100,
                       .blocks = BATCH * 26,
                       .pad = kvb_cache_pad()};
    if (!rig_open(&r, shape, 1))
        return;
    kvb_store put = {
        .cache = &r.cache, .k = source[0], .v = source[1], .tokens = CAPACITY, .isa = tiers[0]};
    expect(!run_bulk(&put, 3), "bulk: %s", kvb_message());
    for (int i = 0; tiers[i] >= 0; i++) {
        r.lengths[0] = CAPACITY, r.lengths[1] = 1500 + 3 * layout;
        check_tier(&r, source[2], layout == 1 ? 1111 : 0, tiers[i]);
    }
    rig_close(&r);
}

void check_threads(void)
{
    int64_t rows = (int64_t)BATCH * CAPACITY * KV_HEADS;
    float *k = need((size_t)(rows * DIM) * sizeof *k),
          *v = need((size_t)(rows * V_DIM) * sizeof *v);
    float q[BATCH * Q_HEADS * DIM];
    const float *const source[] = {k, v, q};
    noise(k, rows * DIM, 11);
    noise(v, rows * V_DIM, 12);
    noise(q, BATCH * Q_HEADS * DIM, 13);
    for (int32_t layout = 0; kvb_word("layout", layout); layout++) {
        const bool floats = kvb_reads(0, layout, 0, KVB_K) >= 0; /* else only codes */
        check_layout(layout, floats ? "f32" : "i8", floats ? "f32" : "i8", source);
        check_layout(layout, floats ? "bf16" : "e4m3", "q8_0", source);
    }
    check_rounding(k);
    free(k);
    free(v);
}
