/* Non-temporal stores, which plain C does not have. Ordinary stores on other architectures. */
#ifndef KVB_STREAM_H
#define KVB_STREAM_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* Copy `bytes`, a multiple of 16, past the caches. `to` is aligned to 16 bytes. */
static inline void stream(void *to, const void *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 16) {
        long long pair[2];
        memcpy(pair, (const char *)from + at, sizeof pair);
#if defined(__x86_64__)
        _mm_stream_si64((long long *)(void *)((char *)to + at), pair[0]);
        _mm_stream_si64((long long *)(void *)((char *)to + at + 8), pair[1]);
#elif defined(__aarch64__)
        __asm__ volatile("stnp %0, %1, [%2]"
                         :
                         : "r"(pair[0]), "r"(pair[1]), "r"((char *)to + at)
                         : "memory");
#else
        memcpy((char *)to + at, pair, sizeof pair);
#endif
    }
}

/* Call after the last stream(): it orders these stores before later ones, so that other threads may
 * then read them. */
static inline void stream_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#elif defined(__aarch64__)
    __asm__ volatile("dmb ishst" : : : "memory");
#endif
}

#endif
