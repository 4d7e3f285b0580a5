/* What plain C streams and computes. An empty asm makes the compiler believe that a value or memory is used, and
 * keeps a copy or fill loop from becoming a library call. */
#include <string.h>

#include "scalar/scalar.h"
#include "base/stream.h"

typedef uint64_t __attribute__((may_alias)) word;
typedef float __attribute__((may_alias)) real;

enum { WORDS = LINE / sizeof(word), REALS = LINE / sizeof(real), CHAINS = 16 };

#define USE(x) __asm__ volatile("" : : "r"(x))
#define USE_MEMORY() __asm__ volatile("" : : : "memory")

/* Ask for the line `distance` bytes further, which may lie behind the end of the buffer. */
static void fetch(const void *line, int64_t distance)
{
    if (distance)
        __builtin_prefetch((const void *)((uintptr_t)line + (uintptr_t)distance));
}

void kvb_scalar_read(const void *from, int64_t bytes, kvb_ahead ahead)
{
    word sum[WORDS] = {0}, all = 0;
    for (int64_t at = 0; at < bytes; at += LINE) {
        const word *line = (const word *)(const void *)((const uint8_t *)from + at);
        fetch(line, ahead.distance);
        for (size_t i = 0; i < WORDS; i++)
            sum[i] += line[i];
    }
    for (size_t i = 0; i < WORDS; i++)
        all += sum[i];
    USE(all);
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

/* Independent chains of x = x / 2 + 1 / 4, which settle at 1 / 2: never denormal, never infinite. */
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

/* Chains of sums of products of whole numbers, which the empty asm hides from the compiler. */
double kvb_scalar_dots(int64_t rounds)
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

/* A line's bytes of a packed row, which begins anywhere: words, the last one again where less is left of the row. */
static void read_packed(const uint8_t *row, int64_t from, int64_t bytes)
{
    for (int64_t end = at_most(from + LINE, bytes); from < end; from += (int64_t)sizeof(word)) {
        word value;
        memcpy(&value, row + at_most(from, bytes - (int64_t)sizeof value), sizeof value);
        USE(value);
    }
}

/* The first `bytes` of rows, or of blocks of `step` rows. */
static void twin_rows(kvb_places rows, int32_t count, int32_t step, int64_t bytes)
{
    for (int32_t t = 0; t < count; t += step) {
        const uint8_t *row = kvb_row_at(rows, t);
        for (int64_t b = 0; b < bytes; b += LINE) {
            if ((uintptr_t)row % LINE || bytes % LINE)
                read_packed(row, b, bytes);
            else
                kvb_scalar_read(row + b, LINE, (kvb_ahead){0});
        }
    }
}

/* The bytes of the rows and the scales, and no others. */
void kvb_scalar_twin(const kvb_tile *tile, int64_t bytes)
{
    for (int32_t t = 0; tile->k_scale && t < tile->count; t++) {
        USE(tile->k_scale[t]);
        USE(tile->v_scale[t]);
    }
    if (tile->k_block)
        twin_rows(tile->k, tile->count, LANES, tile->k_block);
    else
        twin_rows(tile->k, tile->count, 1, bytes);
    twin_rows(kvb_rows_from(tile->v, tile->lead), tile->count - tile->lead, 1, bytes);
}
