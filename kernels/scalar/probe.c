/* The probes in plain C. An empty asm makes the compiler assume that a value or memory is used, and
 * keeps it from replacing a copy or fill loop by a library call. */
#include <string.h>

#include "scalar/scalar.h"
#include "base/stream.h"

typedef float __attribute__((may_alias)) real;

enum { WORDS = LINE / sizeof(uint16_t), REALS = LINE / sizeof(real), CHAINS = 16 };

#define USE(x) __asm__ volatile("" : : "r"(x))
#define USE_MEMORY() __asm__ volatile("" : : : "memory")

/* Prefetch the line `distance` bytes ahead, which may be after the end of the buffer. */
static void fetch(const void *line, int64_t distance)
{
    if (distance)
        __builtin_prefetch((const void *)((uintptr_t)line + (uintptr_t)distance));
}

/* Add the 16-bit words of a line to the sums. The address is even. */
static void add_line(const uint8_t *line, uint16_t *sums)
{
    for (size_t i = 0; i < WORDS; i++) {
        uint16_t word;
        memcpy(&word, line + i * sizeof word, sizeof word);
        sums[i] += word;
    }
}

/* Sums stay in registers: in memory every line would wait for the one before. */
void kvb_scalar_read(const void *from, int64_t bytes, kvb_ahead ahead, kvb_sum *sum)
{
    uint16_t lanes[WORDS];
    memcpy(lanes, sum->lanes, sizeof lanes);
    for (int64_t at = 0; at < bytes; at += LINE) {
        const uint8_t *line = (const uint8_t *)from + at;
        fetch(line, ahead.distance);
        add_line(line, lanes);
    }
    memcpy(sum->lanes, lanes, sizeof lanes);
}

void kvb_scalar_write(void *to, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LINE) {
        real *line = (real *)(void *)((uint8_t *)to + at);
        for (size_t i = 0; i < REALS; i++)
            line[i] = 1.0f;
        USE_MEMORY();
    }
}

void kvb_scalar_write_nt(void *to, int64_t bytes)
{
    float line[REALS];
    for (size_t i = 0; i < REALS; i++)
        line[i] = 1.0f;
    for (int64_t at = 0; at < bytes; at += LINE)
        stream((uint8_t *)to + at, line, LINE);
}

void kvb_scalar_copy(void *to, const void *from, int64_t bytes, int64_t distance)
{
    for (int64_t at = 0; at < bytes; at += LINE) {
        fetch((const uint8_t *)from + at, distance);
        memcpy((uint8_t *)to + at, (const uint8_t *)from + at, LINE);
        USE_MEMORY();
    }
}

void kvb_scalar_copy_nt(void *to, const void *from, int64_t bytes, int64_t distance)
{
    for (int64_t at = 0; at < bytes; at += LINE) {
        const uint8_t *source = (const uint8_t *)from + at;
        fetch(source, distance);
        stream((uint8_t *)to + at, source, LINE);
    }
}

/* to = from + 3 * from2 */
void kvb_scalar_triad(void *to, const void *from, const void *from2, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LINE) {
        real *line = (real *)(void *)((uint8_t *)to + at);
        const real *a = (const real *)(const void *)((const uint8_t *)from + at);
        const real *b = (const real *)(const void *)((const uint8_t *)from2 + at);
        for (size_t i = 0; i < REALS; i++)
            line[i] = a[i] + 3.0f * b[i];
        USE_MEMORY();
    }
}

/* Independent chains of x = x / 2 + 1 / 4, which converge to 1 / 2: never denormal or infinite.
 */
double kvb_scalar_flops(int64_t rounds)
{
    volatile float half = 0.5f, quarter = 0.25f;
    float a = half, b = quarter, chain[CHAINS] = {0}, all = 0.0f;
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = chain[i] * a + b;
    for (int i = 0; i < CHAINS; i++)
        all += chain[i];
    volatile float used = all;
    (void)used;
    return (double)rounds * (2 * CHAINS);
}

/* Chains of sums of products of whole numbers; the empty asm hides them from the compiler. */
double kvb_scalar_dots8(int64_t rounds)
{
    int32_t a = 3, b = 5, chain[CHAINS] = {0};
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++) {
            __asm__ volatile("" : "+r"(a));
            chain[i] = (chain[i] + a * b) & 0xffff;
        }
    for (int i = 0; i < CHAINS; i++)
        USE(chain[i]);
    return (double)rounds * (2 * CHAINS);
}

/* Chains of sums of two products of bf16 each. The factors are loaded again in each round. Sums
 * stop growing near 2^22. */
double kvb_scalar_dots16(int64_t rounds)
{
    uint16_t elements[2][CHAINS];
    volatile float half = 0.5f, quarter = 0.25f;
    float a = half, b = quarter, chain[CHAINS] = {0};
    for (int i = 0; i < CHAINS; i++)
        elements[0][i] = 0x3e80, elements[1][i] = 0x3f00; /* 1 / 4, 1 / 2 */
    for (int64_t r = 0; r < rounds; r++) {
        __asm__ volatile("" : : "r"(elements) : "memory");
        for (int i = 0; i < CHAINS; i++)
            chain[i] +=
                a * kvb_scalar_from_bf16(elements[0][i]) + b * kvb_scalar_from_bf16(elements[1][i]);
    }
    volatile float used = chain[rounds % CHAINS];
    (void)used;
    return (double)rounds * (4 * CHAINS);
}

/* Add the first `bytes` of a row: whole lines, then words. */
static void add_row(const uint8_t *row, int64_t bytes, kvb_sum *sum)
{
    const int64_t whole = bytes / LINE * LINE;
    kvb_scalar_read(row, whole, (kvb_ahead){0}, sum);
    for (int64_t at = whole; at < bytes; at += 2) {
        uint16_t word;
        memcpy(&word, row + at, sizeof word);
        sum->rest[at / 2 % SUM_REST] += word;
    }
}

/* Add the first `bytes` of each row, or of each block of `step` rows. */
static void add_rows(kvb_places rows, int32_t count, int32_t step, int64_t bytes, kvb_sum *sum)
{
    for (int32_t t = 0; t < count; t += step)
        add_row(kvb_row_at(rows, t), bytes, sum);
}

static void add_scale(float scale, kvb_sum *sum)
{
    uint16_t words[2];
    memcpy(words, &scale, sizeof words);
    sum->rest[0] += words[0];
    sum->rest[1] += words[1];
}

/* Add the rows and scales of a side, and no other bytes. */
static void add_side(const kvb_tile *tile, const kvb_side *side, kvb_sum *sum)
{
    for (int32_t t = tile->lead; side->scale && t < tile->count; t++)
        add_scale(side->scale[t], sum);
    if (side->block)
        add_rows(side->rows, tile->count, LANES, side->block, sum);
    else
        add_rows(kvb_rows_from(side->rows, tile->lead), tile->count - tile->lead, 1, side->bytes,
                 sum);
}

void kvb_scalar_twin(const kvb_tile *tile, kvb_sum *sum)
{
    add_side(tile, &tile->k, sum);
    add_side(tile, &tile->v, sum);
}
