/* Packed rows: blocks of 32 elements without gaps. A block is an f16 scale, then its codes. Whole
 * blocks are ggml's q8_0 and q4_0, to the bit, as its reference in plain C stores them. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "scalar/scalar.h"

enum { PACK = 32, HALF = PACK / 2, CODES = 2 /* bytes of the scale before them */ };

/* ---- the rules ----------------------------------------------------------------------------------
 *
 * q8_0, 34 bytes: x = code * scale
 *   scale   = max |x| / 127
 *   code    = x * inverse rounded to nearest, ties away from zero, within [-127, 127]
 *
 * q4_0, 18 bytes: x = (code - 8) * scale; byte i holds element i in its lower half, element i + 16
 * in the upper one
 *   scale   = p / -8 for the first p of the largest magnitude, so that p becomes code 0; p is +0 in
 *             a block of zeros
 *   code    = x * inverse, within [-8, 8], + 8.5 cut to an integer; at most 15
 *
 * inverse   = 1 / scale, before the scale is rounded; 0 where that is not finite (a block of zeros,
 *             or of nothing above about 2^-121)
 * A scale that would round to an infinite f16 becomes +-65504, also in `inverse`. So Inf, and
 * values beyond such a scale, saturate, as far as their neighbours allow. A NaN counts as 0. Each
 * step is one float32 operation. Zeros fill the last block of a row. */

static float at_most_by(float x, float most) { return x > most ? most : x < -most ? -most : x; }

/* Store the scale; return `inverse`. */
static float put_scale(float scale, uint8_t *to)
{
    if (fabsf(scale) >= 65520.0f)
        scale = copysignf(65504.0f, scale);
    uint16_t half = kvb_scalar_f16(scale);
    memcpy(to, &half, sizeof half);
    return kvb_scalar_inverse(scale);
}

static void put_q8_0(const float *x, uint8_t *to)
{
    float most = 0.0f;
    for (int i = 0; i < PACK; i++)
        most = fabsf(kvb_scalar_number(x[i])) > most ? fabsf(x[i]) : most;
    float inverse = put_scale(most / 127.0f, to);
    for (int i = 0; i < PACK; i++)
        to[CODES + i] =
            (uint8_t)(int8_t)roundf(at_most_by(kvb_scalar_number(x[i]) * inverse, 127.0f));
}

static void put_q4_0(const float *x, uint8_t *to)
{
    float peak = 0.0f;
    for (int i = 0; i < PACK; i++)
        peak = fabsf(kvb_scalar_number(x[i])) > fabsf(peak) ? x[i] : peak;
    float inverse = put_scale(peak / -8.0f, to);
    memset(to + CODES, 0, HALF);
    for (int i = 0; i < PACK; i++) {
        int code = (int)(at_most_by(kvb_scalar_number(x[i]) * inverse, 8.0f) + 8.5f);
        to[CODES + i % HALF] |= (uint8_t)((code < 15 ? code : 15) << i / HALF * 4);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

void kvb_scalar_pack(int32_t dtype, const float *from, int64_t dim, uint8_t *row)
{
    assert(kvb_formats[dtype].elements == PACK);
    for (int64_t d = 0; d < dim; d += PACK, row += kvb_formats[dtype].bytes) {
        float x[PACK] = {0};
        memcpy(x, from + d, (size_t)at_most(PACK, dim - d) * sizeof *x);
        (dtype == DTYPE_Q8_0 ? put_q8_0 : put_q4_0)(x, row);
    }
}

int kvb_scalar_code(int32_t dtype, const uint8_t *row, int64_t d)
{
    if (dtype == DTYPE_I8)
        return (int8_t)row[d];
    const uint8_t *codes = row + d / PACK * kvb_formats[dtype].bytes + CODES;
    int64_t i = d % PACK;
    return dtype == DTYPE_Q8_0 ? (int8_t)codes[i] : (codes[i % HALF] >> i / HALF * 4 & 15) - 8;
}

float kvb_scalar_step(int32_t dtype, const uint8_t *row, int64_t d)
{
    uint16_t scale;
    if (dtype == DTYPE_I8)
        return 1.0f;
    memcpy(&scale, row + d / PACK * kvb_formats[dtype].bytes, sizeof scale);
    return kvb_scalar_from_f16(scale);
}

float kvb_scalar_packed(int32_t dtype, const uint8_t *row, int64_t d)
{
    return (float)kvb_scalar_code(dtype, row, d) * kvb_scalar_step(dtype, row, d); /* exact */
}
