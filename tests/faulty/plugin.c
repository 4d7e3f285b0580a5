/* The documented plug-in with another registry: its own kernel, and kernels that lie, cheat or
 * damage memory, each named after its function. -DLISTED=... replaces the registry. -DLOADED=... is
 * code that runs when the library is loaded.
 */
#define _GNU_SOURCE 1
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define kvb_kernels documented_kernels
#define kvb_plugin documented_plugin
#include "../../kernels/example/plugin.c"
#undef kvb_kernels
#undef kvb_plugin

#ifndef VERSION
#define VERSION KVB_PLUGIN
#endif

#ifndef LATE
#define LATE 6
#endif

#define KERNEL_OF(name) __attribute__((unused)) static void name(const kvb_work *w)

KERNEL_OF(right) { textbook(w); }

/* ---- wrong numbers --------------------------------------------------------------------------- */

KERNEL_OF(wrong) /* one number */
{
    textbook(w);
    w->acc[w->cache->head_dim - 1] += 0.5f * w->sum[0];
}

KERNEL_OF(nans)
{
    textbook(w);
    w->sum[w->heads * w->group - 1] = NAN;
}

KERNEL_OF(late) /* right at first */
{
    static int calls;
    (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) < LATE ? right : wrong)(w);
}

KERNEL_OF(rarely) /* no check may notice */
{
    static int calls;
    (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 1000 ? right : wrong)(w);
}

KERNEL_OF(silent) { (void)w; }

/* ---- remembered answers ---------------------------------------------------------------------- */

typedef struct answer {
    uint64_t key;
    float *max, *sum, *acc;
} answer;

static uint64_t mixed(uint64_t key, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        key = (key ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
    return key;
}

static void remembering(const kvb_work *w, uint64_t key)
{
    static answer known[1 << 14];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t states = (size_t)(w->heads * w->group), numbers = states * (size_t)w->cache->head_dim;
    int64_t unit[] = {w->seq, w->head, w->first, w->count};
    key = mixed(key, unit, sizeof unit) | 1;
    pthread_mutex_lock(&lock);
    answer *a = known + key % (1 << 14);
    while (a->key && a->key != key)
        a = a == known + (1 << 14) - 1 ? known : a + 1;
    if (!a->key) {
        textbook(w);
        *a = (answer){key, malloc(states * sizeof(float)), malloc(states * sizeof(float)),
                      malloc(numbers * sizeof(float))};
        memcpy(a->max, w->max, states * sizeof(float));
        memcpy(a->sum, w->sum, states * sizeof(float));
        memcpy(a->acc, w->acc, numbers * sizeof(float));
    }
    pthread_mutex_unlock(&lock);
    memcpy(w->max, a->max, states * sizeof(float));
    memcpy(w->sum, a->sum, states * sizeof(float));
    memcpy(w->acc, a->acc, numbers * sizeof(float));
}

KERNEL_OF(places) /* known by the addresses of K and q */
{
    const void *key[] = {w->cache->k.rows, w->q};
    remembering(w, mixed(1, key, sizeof key));
}

KERNEL_OF(glances) /* also by the first number of q */
{
    const void *key[] = {w->cache->k.rows, w->q};
    remembering(w, mixed(mixed(2, key, sizeof key), w->q, sizeof(float)));
}

KERNEL_OF(samples) /* known by all queries and every 64th row of K */
{
    uint64_t key =
        mixed(3, w->q, (size_t)(w->heads * w->group * w->cache->head_dim) * sizeof(float));
    for (int64_t t = w->first; t < w->first + w->count; t += 64)
        key = mixed(key, row(w->cache, &w->cache->k, w->seq, w->head, t), sizeof(float));
    remembering(w, key);
}

/* ---- forbidden writes ------------------------------------------------------------------------ */

KERNEL_OF(before)
{
    textbook(w);
    w->acc[-1] = 0.0f;
}

KERNEL_OF(behind)
{
    textbook(w);
    w->acc[w->heads * w->group * w->cache->head_dim] = 0.0f;
}

KERNEL_OF(nudges) /* the lowest bit of a number of V */
{
    textbook(w);
    *(uint32_t *)(uintptr_t)row(w->cache, &w->cache->v, w->seq, w->head, w->first) ^= 1;
}

KERNEL_OF(asks) /* a number of the query */
{
    textbook(w);
    *(uint32_t *)(uintptr_t)w->q ^= 1;
}

KERNEL_OF(shortens)
{
    textbook(w);
    w->cache->lengths[w->seq] -= w->cache->lengths[w->seq] > 1;
}

/* ---- the process ends or stops --------------------------------------------------------------- */

KERNEL_OF(crash) { *(volatile float *)NULL = w->scale; }
KERNEL_OF(leaves) { exit(0); }
KERNEL_OF(quits) { _exit(0); }
KERNEL_OF(hangs)
{
    for (; w->count;)
        usleep(1000);
}
KERNEL_OF(closes)
{
    textbook(w);
    for (int file = 0; file < 64; file++)
        close(file);
}

/* ---- harm to other kernels ------------------------------------------------------------------- */

static void *spinning(void *until)
{
    for (volatile int *end = until; !end || !*end;)
        ;
    return NULL;
}

KERNEL_OF(spins)
{
    static pthread_t thread;
    textbook(w);
    if (!thread)
        pthread_create(&thread, NULL, spinning, NULL);
}

KERNEL_OF(crowds) /* many threads, which end before it returns */
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    volatile int end = 0;
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, spinning, (void *)&end);
        pthread_setaffinity_np(threads[i], sizeof all, &all);
    }
    textbook(w);
    usleep(20000);
    end = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

KERNEL_OF(moves) /* its threads may run on any CPU */
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    textbook(w);
    sched_setaffinity(0, sizeof all, &all);
}

KERNEL_OF(stops) { raise(w->count ? SIGSTOP : 0); }

KERNEL_OF(rounds)
{
    textbook(w);
    fesetround(FE_TOWARDZERO);
}

KERNEL_OF(flushes) /* the CPU flushes small numbers to zero */
{
    textbook(w);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" ::"r"(mode | 1 << 24));
#endif
}

KERNEL_OF(talks)
{
    textbook(w);
    printf("hello\n");
    fflush(stdout);
}

#define ONE(name) {"decode", #name, "head", "f32", ISA, "for tests", 1, 0, name}
#ifndef LISTED
#define LISTED                                                                                   \
    ONE(right), ONE(wrong), ONE(nans), ONE(late), ONE(rarely), ONE(silent), ONE(places),         \
        ONE(glances), ONE(samples), ONE(before), ONE(behind), ONE(nudges), ONE(asks),            \
        ONE(shortens), ONE(crash), ONE(leaves), ONE(quits), ONE(hangs), ONE(closes), ONE(spins), \
        ONE(crowds), ONE(rounds), ONE(flushes), ONE(moves), ONE(talks)
#endif

#ifdef LOADED
__attribute__((constructor)) static void loaded(void) { LOADED; }
#endif

#ifndef NO_TABLE
const kvb_kernel *kvb_kernels(int32_t index)
{
    static const kvb_kernel listed[] = {LISTED, {0}};
    return listed[index].about ? &listed[index] : NULL;
}
#endif

#ifndef NO_VERSION
extern const int32_t kvb_plugin;
const int32_t kvb_plugin = VERSION;
#endif
