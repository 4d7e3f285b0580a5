/* Decode attention over float32 K and V, [kv_heads][tokens][dim], with one planted fault or none.
 * Heads are split over a team of threads that spin between calls. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLEEPS = 1, TWICE = 2, SINGLE = 3 };

typedef struct {
    int mode, threads, q_heads, kv_heads, tokens, dim;
    long sleep_ns;
    const float *q, *k, *v, *again_k, *again_v; /* arguments of this call */
    float *out;
    float *scores, *waste; /* [kv_heads][tokens]; [kv_heads][dim], never read */
    atomic_int turn, done;
} engine;

typedef struct {
    engine *of;
    int number;
} member;

static void attend(const engine *e, const float *q, const float *k, const float *v, float *scores,
                   float *out)
{
    float most = -INFINITY, sum = 0;
    for (int t = 0; t < e->tokens; t++) {
        float dot = 0;
        for (int d = 0; d < e->dim; d++)
            dot += q[d] * k[(size_t)t * e->dim + d];
        scores[t] = dot / sqrtf((float)e->dim);
        most = fmaxf(most, scores[t]);
    }
    memset(out, 0, sizeof(float) * e->dim);
    for (int t = 0; t < e->tokens; t++) {
        float weight = expf(scores[t] - most);
        sum += weight;
        for (int d = 0; d < e->dim; d++)
            out[d] += weight * v[(size_t)t * e->dim + d];
    }
    for (int d = 0; d < e->dim; d++)
        out[d] /= sum;
}

static void share(engine *e, int number, int threads)
{
    size_t plane = (size_t)e->tokens * e->dim, group = e->q_heads / e->kv_heads;
    for (int head = number; head < e->kv_heads; head += threads) {
        float *scores = e->scores + (size_t)head * e->tokens;
        for (size_t row = head * group; row < (head + 1) * group; row++) {
            const float *q = e->q + row * e->dim;
            if (e->mode == TWICE)
                attend(e, q, e->again_k + head * plane, e->again_v + head * plane, scores,
                       e->waste + (size_t)head * e->dim);
            attend(e, q, e->k + head * plane, e->v + head * plane, scores, e->out + row * e->dim);
        }
    }
}

static void *work(void *argument)
{
    member own = *(member *)argument;
    free(argument);
    for (int turn = 1;; turn++) {
        while (atomic_load(&own.of->turn) != turn)
            sched_yield();
        share(own.of, own.number, own.of->threads);
        atomic_fetch_add(&own.of->done, 1);
    }
    return NULL;
}

engine *planted_begin(int mode, long sleep_ns, int threads, int q_heads, int kv_heads, int tokens,
                      int dim)
{
    engine *e = calloc(1, sizeof *e);
    *e = (engine){.mode = mode,
                  .sleep_ns = sleep_ns,
                  .threads = mode == SINGLE ? 1 : threads,
                  .q_heads = q_heads,
                  .kv_heads = kv_heads,
                  .tokens = tokens,
                  .dim = dim};
    e->scores = malloc(sizeof(float) * kv_heads * tokens);
    e->waste = malloc(sizeof(float) * kv_heads * dim);
    for (int number = 1; number < e->threads; number++) {
        pthread_t thread;
        member *own = malloc(sizeof *own);
        *own = (member){e, number};
        pthread_create(&thread, NULL, work, own);
    }
    return e;
}

void planted_step(engine *e, const float *q, const float *k, const float *v, const float *again_k,
                  const float *again_v, float *out)
{
    if (e->mode == SLEEPS)
        nanosleep(&(struct timespec){.tv_nsec = e->sleep_ns}, NULL);
    e->q = q, e->k = k, e->v = v, e->again_k = again_k, e->again_v = again_v, e->out = out;
    atomic_store(&e->done, 0);
    atomic_fetch_add(&e->turn, 1);
    share(e, 0, e->threads);
    while (atomic_load(&e->done) != e->threads - 1)
        sched_yield();
}
