/* A plug-in with a decode kernel of your own: textbook attention over float32 rows, in the layouts
 * head, position and paged.
 *
 *     kvbench verify --example > my.c
 *     cc -O3 -march=native -shared -fPIC -I "$(kvbench verify --include)" -o my.so my.c -lm
 *     kvbench verify --plugin my.so
 *     kvbench sweep --plugin my.so --axis dtype=f32
 *
 * In abi.h, kvb_work says what a kernel must do, and kvb_cache where rows are.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kvbench.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ISA "avx512"
#elif defined(__AVX2__) && defined(__FMA__)
#define ISA "avx2"
#elif defined(__aarch64__)
#define ISA "neon"
#else
#define ISA "scalar"
#endif

static const float *row(const kvb_cache *c, const kvb_plane *p, int64_t seq, int64_t head,
                        int64_t token)
{
    int64_t slot = c->ring ? token % c->capacity : token, place = seq;
    if (c->table_stride) { /* paged: look up the block */
        place = c->table[seq * c->table_stride + slot / c->block_tokens];
        slot %= c->block_tokens;
    }
    return (const float *)(const void *)(p->rows + place * p->seq_stride + head * p->head_stride +
                                         slot * p->token_stride);
}

static bool attends(const kvb_work *w, int64_t query, int64_t token)
{
    /* which of the q_len newest tokens it is; below 0: an older token */
    int64_t newest = token - w->cache->lengths[w->seq] + w->q_len;
    bool seen = w->mask != KVB_MASK_TREE || newest < 0 || w->tree[query] >> newest & 1;
    return seen && (!w->ends || token < w->ends[query]);
}

/* Online softmax: if a score exceeds the maximum so far, the sums so far are scaled down. */
static void textbook(const kvb_work *w)
{
    const kvb_cache *c = w->cache;
    int64_t heads = w->heads * w->group; /* query heads of each query */
    for (int64_t i = 0; i < w->q_len * heads; i++) {
        int64_t query = i / heads, head = w->head + i % heads / w->group;
        const float *q = w->q + query * w->q_stride + i % heads * c->head_dim;
        float max = -INFINITY, sum = 0.0f, *acc = w->acc + i * c->head_dim;
        memset(acc, 0, (size_t)c->head_dim * sizeof *acc);
        for (int64_t t = w->first; t < w->first + w->count; t++) {
            if (!attends(w, query, t))
                continue;
            const float *k = row(c, &c->k, w->seq, head, t), *v = row(c, &c->v, w->seq, head, t);
            float score = 0.0f;
            for (int64_t d = 0; d < c->head_dim; d++)
                score += q[d] * k[d];
            score *= w->scale;
            /* score and max may both be -INFINITY */
            float top = fmaxf(max, score), shrink = max == top ? 1.0f : expf(max - top);
            float p = expf(score - (top == -INFINITY ? 0.0f : top));
            for (int64_t d = 0; d < c->head_dim; d++)
                acc[d] = acc[d] * shrink + p * v[d];
            sum = sum * shrink + p;
            max = top;
        }
        w->max[i] = max;
        w->sum[i] = sum;
    }
}

#define TAKES (KVB_TAKES_QUERIES | KVB_TAKES_MASK)
#define KERNEL(layout) \
    {"decode", "textbook", layout, "f32", ISA, "one query head after another", 1, TAKES, textbook}
static const kvb_kernel kernels[] = {KERNEL("head"), KERNEL("position"), KERNEL("paged")};

const kvb_kernel *kvb_kernels(int32_t index)
{
    return index >= 0 && index < 3 ? &kernels[index] : NULL;
}

const int32_t kvb_plugin = KVB_PLUGIN;
