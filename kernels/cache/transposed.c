/* K in blocks of LANES tokens, each a matrix [cells][tokens]: cell w of token t lies at (w * LANES
 * + t) * cell bytes of the block, which is as long as its rows would be. A vector that is loaded
 * then holds one cell of as many tokens. */
#include <string.h>

#include "cache/cache.h"
#include "base/stream.h"

/* Four bytes, as instructions for dot products of pairs and quads want them; halves of f16 alone,
 * as conversions do. */
static const int32_t cells[DTYPES] = {
    [DTYPE_F32] = 4, [DTYPE_F16] = 2, [DTYPE_BF16] = 4, [DTYPE_I8] = 4};

int32_t kvb_cell_bytes(int32_t dtype) { return cells[dtype]; }

int32_t kvb_cell(int32_t layout, int32_t dtype, int32_t plane)
{
    bool known = layout >= 0 && layout < LAYOUTS && dtype >= 0 && dtype < DTYPES;
    return known && plane == KVB_K && kvb_layouts[layout].transposed ? cells[dtype] : 0;
}

int64_t kvb_lane(const kvb_cache *c, int64_t token)
{
    if (!kvb_layouts[c->layout].transposed)
        return 0;
    return (c->ring ? token % c->capacity : token) % LANES;
}

int64_t kvb_block_bytes(const kvb_plane *p)
{
    return p->cell ? round_up(round_up(kvb_payload(p->dtype, p->dim), p->cell) * LANES, LINE) : 0;
}

int64_t kvb_blocks_of(const kvb_cache *c, int64_t first, int64_t end)
{
    int64_t slot = c->ring ? first % c->capacity : first, last = slot + end - first;
    /* of a ring that wraps */
    int64_t front = (at_least(0, last - c->capacity) + LANES - 1) / LANES;
    int64_t rest = (at_most(last, c->capacity) + LANES - 1) / LANES - at_least(slot / LANES, front);
    return end > first ? front + at_least(0, rest) : 0;
}

/* ---- rows into a block ----------------------------------------------------------------------- */

/* Cells of `count` rows, each to its row's lane: those from to[0] on. */
static inline void scatter_cells(const uint8_t *rows, int64_t row_bytes, size_t cell, int64_t count,
                                 uint8_t *to)
{
    for (int64_t b = 0; b < row_bytes; b += (int64_t)cell)
        for (int64_t t = 0; t < count; t++)
            memcpy(to + b * LANES + t * (int64_t)cell, rows + t * row_bytes + b, cell);
}

static void scatter(const uint8_t *rows, int64_t row_bytes, int64_t cell, int64_t count,
                    uint8_t *to)
{
    if (cell == 4)
        count == 1 ? scatter_cells(rows, row_bytes, 4, 1, to)
                   : scatter_cells(rows, row_bytes, 4, count, to);
    else
        count == 1 ? scatter_cells(rows, row_bytes, 2, 1, to)
                   : scatter_cells(rows, row_bytes, 2, count, to);
}

/* A whole block, by squares of 4 x 4 in vectors that every CPU has. */
typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint16_t octet __attribute__((vector_size(16)));

#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

static inline quad quad_at(const uint8_t *at)
{
    quad a;
    memcpy(&a, at, sizeof a);
    return a;
}

/* Four rows of words as four columns, `line` bytes apart. */
static inline void turn_square(quad a, quad b, quad c, quad d, uint8_t *to, int64_t line)
{
    const quad ab = MIX(a, b, 0, 4, 1, 5), cd = MIX(c, d, 0, 4, 1, 5);
    const quad ab_high = MIX(a, b, 2, 6, 3, 7), cd_high = MIX(c, d, 2, 6, 3, 7);
    const quad columns[4] = {MIX(ab, cd, 0, 1, 4, 5), MIX(ab, cd, 2, 3, 6, 7),
                             MIX(ab_high, cd_high, 0, 1, 4, 5), MIX(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(to + i * line, &columns[i], sizeof columns[i]);
}

/* STRIP bytes of LANES rows as cells: so many lines of the block. */
enum { STRIP = 16 };

static inline void turn_words(const uint8_t *rows, int64_t row, uint8_t *to)
{
    for (int64_t t = 0; t < LANES; t += 4) {
        const uint8_t *at = rows + t * row;
        turn_square(quad_at(at), quad_at(at + row), quad_at(at + 2 * row), quad_at(at + 3 * row),
                    to + t * 4, LANES * 4);
    }
}

/* Halves of two rows, side by side: of their first four cells, or the last. */
static inline quad zip(const uint8_t *at, int64_t row, bool high)
{
    const octet a = (octet)quad_at(at), b = (octet)quad_at(at + row);
    return (quad)(high ? MIX(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
                       : MIX(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
}

static inline void turn_halves(const uint8_t *rows, int64_t row, uint8_t *to)
{
    for (int64_t t = 0; t < LANES; t += 8)
        for (int high = 0; high < 2; high++) {
            const uint8_t *at = rows + t * row;
            turn_square(zip(at, row, high), zip(at + 2 * row, row, high),
                        zip(at + 4 * row, row, high), zip(at + 6 * row, row, high),
                        to + high * STRIP / 2 * LANES + t * 2, LANES * 2);
        }
}

static void turn(const uint8_t *rows, int64_t row_bytes, int64_t cell, bool nt, uint8_t *to)
{
    _Alignas(LINE) uint8_t beside[STRIP * LANES];
    for (int64_t b = 0; b < row_bytes; b += STRIP) {
        uint8_t *lines = to + b * LANES;
        if (cell == 4)
            turn_words(rows + b, row_bytes, nt ? beside : lines);
        else
            turn_halves(rows + b, row_bytes, nt ? beside : lines);
        if (nt)
            stream(lines, beside, sizeof beside);
    }
    if (nt)
        stream_end();
}

/* Only whole blocks are whole lines, and can be streamed. */
void kvb_lay_rows(const kvb_plane *p, const uint8_t *rows, int64_t count, int64_t lane, bool nt,
                  uint8_t *to)
{
    uint8_t *block = to - lane * p->row_bytes;
    if (count == LANES)
        turn(rows, p->row_bytes, p->cell, nt, block);
    else
        scatter(rows, p->row_bytes, p->cell, count, block + lane * p->cell);
}

/* ---- and back -------------------------------------------------------------------------------- */

void kvb_gather(int32_t dtype, const uint8_t *block, int64_t lane, int64_t dim, uint8_t *row)
{
    const int64_t cell = kvb_cell_bytes(dtype), bytes = kvb_payload(dtype, dim);
    for (int64_t at = 0; at < bytes; at += cell)
        memcpy(row + at, block + at * LANES + lane * cell, (size_t)cell);
}
