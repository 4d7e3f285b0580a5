/* Planes in blocks of LANES tokens, each as long as its rows would be.
 *
 * K is a matrix [cells of a row][tokens]: a loaded vector has one cell of each token. V of block16
 * is in quads, [16 codes of a row][4 tokens]: a loaded vector has 16 codes of four tokens. So 16
 * codes of a block are four lines in both planes, a square:
 *
 *   K, line c    | t0: 4 codes | t1: 4 codes | ... | t15 |      codes 4 c to 4 c + 3 of each token
 *   V, line t/4  | code 0: 4 tokens | code 1: ... | 15 |        tokens t to t + 3 of each code
 *
 * A block of packed rows begins with the scales: those of one pack for 16 tokens, then of the next
 * pack. The codes of all packs follow as one row. */
#include <string.h>

#include "cache/cache.h"
#include "base/stream.h"

/* Cells of blockt: four bytes, as the dot-product instructions take them; f16: two bytes, as
 * conversions take them. */
static const int32_t cells[DTYPES] = {
    [DTYPE_F32] = 4, [DTYPE_F16] = 2, [DTYPE_BF16] = 4, [DTYPE_I8] = 4};

/* Cells of block16. */
enum { CELL = 4, QUAD = 1 };
static int32_t cell_of_codes(int32_t dtype, int32_t plane)
{
    const kvb_format *f = &kvb_formats[dtype];
    return f->elements == 1 && f->bytes > 1 ? 0 : plane == KVB_K ? CELL : QUAD;
}

int32_t kvb_cell(int32_t layout, int32_t dtype, int32_t plane)
{
    if (layout < 0 || layout >= LAYOUTS || dtype < 0 || dtype >= DTYPES ||
        (plane != KVB_K && plane != KVB_V))
        return 0;
    if (kvb_layouts[layout].quads)
        return cell_of_codes(dtype, plane);
    return plane == KVB_K && kvb_layouts[layout].transposed ? cells[dtype] : 0;
}

int64_t kvb_lane(const kvb_cache *c, int64_t token)
{
    if (!kvb_layouts[c->layout].transposed)
        return 0;
    return (c->ring ? token % c->capacity : token) % LANES;
}

/* ---- offsets in a block ---------------------------------------------------------------------- */

enum { SIDE = 16, SQUARE = SIDE * LANES, TOGETHER = 4 /* tokens of a quad */ };

/* Return the bytes of scales at the start of a block. */
static int64_t front_of(int32_t dtype, int64_t dim)
{
    const kvb_format *f = &kvb_formats[dtype];
    return (dim + f->elements - 1) / f->elements * LANES * kvb_pack_scale(dtype);
}

int64_t kvb_place_of(int32_t dtype, int32_t cell, int64_t dim, int64_t lane, int64_t j)
{
    const int64_t front = front_of(dtype, dim);
    if (cell == QUAD)
        return front + j / SIDE * SQUARE + lane / TOGETHER * LINE + j % SIDE * TOGETHER +
               lane % TOGETHER;
    return front + (j / cell * LANES + lane) * cell + j % cell;
}

int64_t kvb_block_bytes(const kvb_plane *p)
{
    const int64_t codes = kvb_payload(p->dtype, p->dim), packed = kvb_pack_scale(p->dtype);
    if (!p->cell || packed)
        return p->cell ? codes * LANES : 0;
    return round_up(round_up(codes, p->cell == QUAD ? SIDE : p->cell) * LANES, LINE);
}

int64_t kvb_blocks_of(const kvb_cache *c, int64_t first, int64_t end, int64_t tokens)
{
    int64_t slot = c->ring ? first % c->capacity : first, last = slot + end - first;
    /* blocks after the wrap of a ring */
    int64_t front = (at_least(0, last - c->capacity) + tokens - 1) / tokens;
    int64_t rest =
        (at_most(last, c->capacity) + tokens - 1) / tokens - at_least(slot / tokens, front);
    return end > first ? front + at_least(0, rest) : 0;
}

/* ---- rows into a block ----------------------------------------------------------------------- */

/* Store the cells of `count` rows, `row` bytes apart. Row i goes to lane i, counted from `to`. */
static inline void scatter_cells(const uint8_t *rows, int64_t row, int64_t bytes, size_t cell,
                                 int64_t count, uint8_t *to)
{
    for (int64_t b = 0; b < bytes; b += (int64_t)cell)
        for (int64_t t = 0; t < count; t++)
            memcpy(to + b * LANES + t * (int64_t)cell, rows + t * row + b, cell);
}

/* The same for quads: row i goes to lane `lane` + i of the square at `to`. */
static inline void scatter_quads(const uint8_t *rows, int64_t row, int64_t bytes, int64_t count,
                                 int64_t lane, uint8_t *to)
{
    for (int64_t t = lane; t < lane + count; t++, rows += row) {
        uint8_t *own = to + t / TOGETHER * LINE + t % TOGETHER;
        for (int64_t b = 0; b < bytes; b++)
            own[b / SIDE * SQUARE + b % SIDE * TOGETHER] = rows[b];
    }
}

/* Store `bytes` of each row among the codes of a block, from the start of a square on. */
static void scatter(const uint8_t *rows, int64_t row, int64_t bytes, int32_t cell, int64_t count,
                    int64_t lane, uint8_t *to)
{
    if (cell == QUAD)
        scatter_quads(rows, row, bytes, count, lane, to);
    else if (cell == 4)
        count == 1 ? scatter_cells(rows, row, bytes, 4, 1, to + lane * 4)
                   : scatter_cells(rows, row, bytes, 4, count, to + lane * 4);
    else
        count == 1 ? scatter_cells(rows, row, bytes, 2, 1, to + lane * 2)
                   : scatter_cells(rows, row, bytes, 2, count, to + lane * 2);
}

/* A whole block is transposed in squares of 4 x 4 words, in vectors that every CPU has. */
typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint16_t octet __attribute__((vector_size(16)));
typedef uint8_t codes __attribute__((vector_size(16)));

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

/* Store four rows of words as four columns, `line` bytes apart. */
static inline void turn_square(quad a, quad b, quad c, quad d, uint8_t *to, int64_t line)
{
    const quad ab = MIX(a, b, 0, 4, 1, 5), cd = MIX(c, d, 0, 4, 1, 5);
    const quad ab_high = MIX(a, b, 2, 6, 3, 7), cd_high = MIX(c, d, 2, 6, 3, 7);
    const quad columns[4] = {MIX(ab, cd, 0, 1, 4, 5), MIX(ab, cd, 2, 3, 6, 7),
                             MIX(ab_high, cd_high, 0, 1, 4, 5), MIX(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(to + i * line, &columns[i], sizeof columns[i]);
}

/* Make a square of SIDE bytes of LANES rows. */
static inline void turn_words(const uint8_t *rows, int64_t row, uint8_t *to)
{
    for (int64_t t = 0; t < LANES; t += 4) {
        const uint8_t *at = rows + t * row;
        turn_square(quad_at(at), quad_at(at + row), quad_at(at + 2 * row), quad_at(at + 3 * row),
                    to + t * 4, LANES * 4);
    }
}

/* Interleave the bytes, or 16-bit words, of the first halves of two vectors, or of their last
 * halves (high). */
static inline codes zip_codes(codes a, codes b, bool high)
{
    return high ? MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
                : MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline quad zip_halves(octet a, octet b, bool high)
{
    return (quad)(high ? MIX(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
                       : MIX(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
}

static inline void turn_quads(const uint8_t *rows, int64_t row, uint8_t *to)
{
    for (int64_t t = 0; t < LANES; t += TOGETHER, to += LINE) {
        const uint8_t *at = rows + t * row;
        const codes a = (codes)quad_at(at), b = (codes)quad_at(at + row),
                    c = (codes)quad_at(at + 2 * row), d = (codes)quad_at(at + 3 * row);
        for (int i = 0; i < 4; i++) {
            const quad four =
                zip_halves((octet)zip_codes(a, b, i / 2), (octet)zip_codes(c, d, i / 2), i % 2);
            memcpy(to + i * (int64_t)sizeof four, &four, sizeof four);
        }
    }
}

/* Interleave the 16-bit cells of two rows: their first four cells, or the next four (high). */
static inline quad zip(const uint8_t *at, int64_t row, bool high)
{
    return zip_halves((octet)quad_at(at), (octet)quad_at(at + row), high);
}

static inline void turn_halves(const uint8_t *rows, int64_t row, uint8_t *to)
{
    for (int64_t t = 0; t < LANES; t += 8)
        for (int high = 0; high < 2; high++) {
            const uint8_t *at = rows + t * row;
            turn_square(zip(at, row, high), zip(at + 2 * row, row, high),
                        zip(at + 4 * row, row, high), zip(at + 6 * row, row, high),
                        to + high * SIDE / 2 * LANES + t * 2, LANES * 2);
        }
}

/* Transpose `bytes` of LANES rows, SIDE bytes at a time, to squares that follow each other. */
static void turn(const uint8_t *rows, int64_t row, int64_t bytes, int32_t cell, bool nt,
                 uint8_t *to)
{
    _Alignas(LINE) uint8_t beside[SQUARE];
    for (int64_t b = 0; b < bytes; b += SIDE, to += SQUARE) {
        uint8_t *lines = nt ? beside : to;
        if (cell == QUAD)
            turn_quads(rows + b, row, lines);
        else if (cell == 4)
            turn_words(rows + b, row, lines);
        else
            turn_halves(rows + b, row, lines);
        if (nt)
            stream(to, beside, sizeof beside);
    }
}

/* Store the scales of one pack. */
static void lay_scales(const uint8_t *rows, int64_t row, int64_t count, uint8_t *to)
{
    for (int64_t t = 0; t < count; t++)
        memcpy(to + t * (int64_t)sizeof(uint16_t), rows + t * row, sizeof(uint16_t));
}

/* Store the scales and codes of packed rows. */
static void lay_packs(const kvb_plane *p, const uint8_t *rows, int64_t count, int64_t lane, bool nt,
                      uint8_t *block)
{
    const int64_t codes = kvb_pack_codes(p->dtype), scale = kvb_pack_scale(p->dtype);
    uint8_t *to = block + front_of(p->dtype, p->dim);
    for (int64_t pack = 0; pack * (scale + codes) < p->row_bytes; pack++, to += codes * LANES) {
        const uint8_t *at = rows + pack * (scale + codes);
        lay_scales(at, p->row_bytes, count, block + kvb_place_of_scale(lane, pack));
        if (count == LANES)
            turn(at + scale, p->row_bytes, codes, p->cell, nt, to);
        else
            scatter(at + scale, p->row_bytes, codes, p->cell, count, lane, to);
    }
}

/* Only whole blocks can be streamed, because they are whole lines. Of packed rows only the codes
 * can, if they begin on a line. */
void kvb_lay_rows(const kvb_plane *p, const uint8_t *rows, int64_t count, int64_t lane, bool nt,
                  uint8_t *to)
{
    uint8_t *block = to - lane * p->row_bytes;
    const bool streams = nt && count == LANES && p->row_bytes * LANES % LINE == 0;
    if (kvb_pack_scale(p->dtype))
        lay_packs(p, rows, count, lane, streams, block);
    else if (count == LANES)
        turn(rows, p->row_bytes, p->row_bytes, p->cell, streams, block);
    else
        scatter(rows, p->row_bytes, p->row_bytes, p->cell, count, lane, block);
    if (streams)
        stream_end();
}

/* ---- and back -------------------------------------------------------------------------------- */

void kvb_gather(int32_t dtype, int32_t cell, const uint8_t *block, int64_t lane, int64_t dim,
                uint8_t *row)
{
    const int64_t codes = kvb_pack_codes(dtype), scale = kvb_pack_scale(dtype);
    const int64_t step = cell == QUAD ? 1 : cell, bytes = kvb_payload(dtype, dim);
    for (int64_t at = 0, j = 0, pack = 0; at < bytes; pack++) {
        memcpy(row + at, block + kvb_place_of_scale(lane, pack), (size_t)scale);
        at += scale;
        for (int64_t end = scale ? at + codes : bytes; at < end; at += step, j += step)
            memcpy(row + at, block + kvb_place_of(dtype, cell, dim, lane, j), (size_t)step);
    }
}
