/* Makes the chain of lines that the probe of latency follows. */
#include "base/check.h"
#include "base/words.h"

static void **link_of(void *buffer, uint64_t line)
{
    return (void **)(void *)((uint8_t *)buffer + line * LINE);
}

/* Sattolo's shuffle: swapping each link with an earlier one always joins two cycles, so one cycle
 * remains. */
int32_t kvb_chain(void *buffer, int64_t bytes, uint64_t seed)
{
    TRY(kvb_check_aligned("buffer", buffer));
    TRY(kvb_check_range("bytes", bytes, LINE, bytes_max));
    TRY(kvb_check_lines("bytes", bytes));
    uint64_t lines = (uint64_t)bytes / LINE;
    for (uint64_t i = 0; i < lines; i++)
        *link_of(buffer, i) = link_of(buffer, i);
    for (uint64_t i = lines - 1; i > 0; i--) {
        void **here = link_of(buffer, i),
             **there = link_of(buffer, kvb_mix(seed += 0x9e3779b97f4a7c15u) % i), *to = *here;
        *here = *there;
        *there = to;
    }
    return KVB_OK;
}
