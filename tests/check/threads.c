/* Deterministic mode gives the same bits for any number of threads, and every tier the same numbers as plain C. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { Q_HEADS = 6, KV_HEADS = 2, DIM = 48, BATCH = 2, CAPACITY = 2600, COUNT = BATCH * Q_HEADS * DIM };

/* Rounded to half precision, to nearest even; no element here comes near its range's end. */
static float halved(float x)
{
    int exponent;
    frexpf(x, &exponent); /* |x| in [2^(exponent - 1), 2^exponent) */
    int unit = (exponent < -13 ? -13 : exponent) - 11;
    return ldexpf(rintf(ldexpf(x, -unit)), unit);
}

/* Attention in double over the source rows k, v [BATCH][CAPACITY][KV_HEADS][DIM]. */
static void reference(const float *q, const float *k, const float *v, const int64_t *lengths, int64_t window,
                      double *out)
{
    double *p = need(CAPACITY * sizeof *p);
    for (int64_t row = 0; row < BATCH * Q_HEADS; row++) {
        int64_t b = row / Q_HEADS, h = row % Q_HEADS / (Q_HEADS / KV_HEADS), end = lengths[b];
        int64_t first = window && end > window ? end - window : 0;
        double most = -INFINITY, sum = 0;
        for (int64_t t = first; t < end; t++) {
            const float *key = k + ((b * CAPACITY + t) * KV_HEADS + h) * DIM;
            p[t] = 0;
            for (int64_t d = 0; d < DIM; d++)
                p[t] += (double)q[row * DIM + d] * (double)key[d] / sqrt(DIM);
            most = fmax(most, p[t]);
        }
        for (int64_t d = 0; d < DIM; d++)
            out[row * DIM + d] = 0;
        for (int64_t t = first; t < end; t++) {
            double weight = exp(p[t] - most);
            sum += weight;
            for (int64_t d = 0; d < DIM; d++)
                out[row * DIM + d] += weight * (double)v[((b * CAPACITY + t) * KV_HEADS + h) * DIM + d];
        }
        for (int64_t d = 0; d < DIM; d++)
            out[row * DIM + d] /= sum;
    }
    free(p);
}

static void compare(const float *out, const double *right, const char *isa, int32_t variant, int32_t threads)
{
    double worst = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        double error = fabs((double)out[i] - right[i]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    expect(worst <= 2e-6 * 1.75, "%s %s on %d threads: error %.3g", isa, kvb_word("variant", variant), threads, worst);
}

/* As the variant takes them: as they are, or as halves. */
static void reference_of(int32_t variant, int32_t layout, const float *q, const float *k, const float *v,
                         const int64_t *lengths, int64_t window, double *out)
{
    if (kvb_reads(variant, layout, word_of("dtype", "f32")) == word_of("dtype", "f32")) {
        reference(q, k, v, lengths, window, out);
        return;
    }
    int64_t rows = (int64_t)BATCH * CAPACITY * KV_HEADS * DIM;
    float *halves = need((size_t)(2 * rows) * sizeof *halves);
    for (int64_t i = 0; i < rows; i++) {
        halves[i] = halved(k[i]);
        halves[rows + i] = halved(v[i]);
    }
    reference(q, halves, halves + rows, lengths, window, out);
    free(halves);
}

static void check_tier(rig *r, const float *q, const float *k, const float *v, int64_t window, int32_t isa)
{
    enum { SCHEDULES = 4 };
    float out[COUNT], first[SCHEDULES][COUNT];
    double right[COUNT];
    for (int32_t variant = 0; kvb_word("variant", variant); variant++) {
        if (!has_kernel(variant, r->cache.layout, r->cache.k.dtype, isa))
            continue;
        reference_of(variant, r->cache.layout, q, k, v, r->lengths, window, right);
        for (int32_t threads = 1; threads <= 16; threads++) {
            kvb_decode args = {.cache = &r->cache, .q = q, .out = out, .q_heads = Q_HEADS, .window = window,
                               .variant = variant, .isa = isa, .schedule = threads % SCHEDULES,
                               .deterministic = 1};
            memset(out, 0xff, sizeof out);
            if (!expect(!run_decode(&args, threads), "decode on %d threads: %s", threads, kvb_message()))
                return;
            if (threads <= SCHEDULES) /* each may cut tiles in its own way */
                memcpy(first[args.schedule], out, sizeof out);
            expect(!memcmp(first[args.schedule], out, sizeof out), "%s %s: %d threads give other bits than %d",
                   kvb_word("isa", isa), kvb_word("variant", variant), threads, threads % SCHEDULES);
            compare(out, right, kvb_word("isa", isa), variant, threads);
            args.deterministic = 0;
            expect(!run_decode(&args, threads), "decode on %d threads: %s", threads, kvb_message());
            compare(out, right, kvb_word("isa", isa), variant, threads);
        }
    }
}

void check_threads(void)
{
    int64_t rows = (int64_t)BATCH * CAPACITY * KV_HEADS * DIM;
    float *k = need((size_t)rows * sizeof *k), *v = need((size_t)rows * sizeof *v), q[COUNT];
    noise(k, rows, 11);
    noise(v, rows, 12);
    noise(q, COUNT, 13);
    for (int32_t layout = 0; kvb_word("layout", layout); layout++) {
        rig r;
        kvb_cache shape = {.layout = layout, PLANES(word_of("dtype", "f32"), 0), .batch = BATCH, .kv_heads = KV_HEADS,
                           .head_dim = DIM, .capacity = CAPACITY, .block_tokens = 100, .blocks = BATCH * 26,
                           .pad = kvb_cache_pad()};
        if (!rig_open(&r, shape, 1))
            return;
        kvb_store put = {.cache = &r.cache, .k = k, .v = v, .tokens = CAPACITY, .isa = tiers[0]};
        expect(!run_bulk(&put, 3), "bulk: %s", kvb_message());
        for (int i = 0; tiers[i] >= 0; i++) {
            r.lengths[0] = CAPACITY, r.lengths[1] = 1500 + 3 * layout;
            check_tier(&r, q, k, v, layout == 1 ? 1111 : 0, tiers[i]);
        }
        rig_close(&r);
    }
    free(k);
    free(v);
}
