/* Clocks. Ticks are the cheapest counter of constant rate, for shares of time inside a pass. Their
 * unit is unknown. */
#ifndef KVB_TICKS_H
#define KVB_TICKS_H

#include <stdint.h>
#include <time.h>

static inline int64_t kvb_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline uint64_t kvb_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)kvb_nanoseconds();
#endif
}

static inline void kvb_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    /* `yield` is a no-op on most cores; isb waits about as long as pause */
    __asm__ volatile("isb");
#endif
}

#endif
