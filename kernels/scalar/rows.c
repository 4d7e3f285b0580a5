/* Rows of float32 to stored bytes and back. Conversions are integer arithmetic, so no rounding mode reaches them. */
#include <assert.h>
#include <float.h>
#include <string.h>

#include "scalar/scalar.h"
#include "base/stream.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* value / 2^drop, to nearest, ties to even; drop in [1, 31] */
static uint32_t round_even(uint32_t value, uint32_t drop)
{
    uint32_t kept = value >> drop, rest = value & ((1u << drop) - 1), half = 1u << (drop - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* ---- f16: 5 bits of exponent, 10 of fraction ------------------------------------------------------------------- */

uint16_t kvb_scalar_f16(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff, exponent = size >> 23;
    if (size > 0x7f800000) /* NaN: quiet, and its upper payload stays */
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000) /* 65520, half way from the largest to the next power of two */
        return (uint16_t)(sign | 0x7c00);
    if (exponent >= 113) /* normal from 2^-14 on; a carry out of the fraction raises the exponent */
        return (uint16_t)(sign | round_even(size - (112u << 23), 13));
    if (exponent < 102) /* at most a quarter of the smallest subnormal */
        return (uint16_t)sign;
    return (uint16_t)(sign | round_even((size & 0x7fffff) | 0x800000, 126 - exponent)); /* in units of 2^-24 */
}

float kvb_scalar_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | (fraction ? 0x400000 : 0) | fraction << 13);
    if (exponent == 0)
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

/* ---- bf16: the upper half of a float32 -------------------------------------------------------------------------- */

uint16_t kvb_scalar_bf16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_even(bits, 16);
}

float kvb_scalar_from_bf16(uint16_t bits) { return float_of((uint32_t)bits << 16); }

/* ---- e4m3, e5m2: 8 bits, 4 or 5 of them exponent ----------------------------------------------------------------
 *
 * What lies beyond the largest finite value, Inf included, becomes that value; every NaN becomes 0x7f with its sign.
 * e4m3 has no Inf, so its exponents go one further: 448. e5m2 is the upper byte of an f16, Inf and NaN included, but a
 * float32 is rounded to it at once, not by way of f16. */

/* Without the lowest `drop` bits of a float32's fraction; normal from the exponent `least` on, at most `most`. */
static uint8_t byte_float(float x, uint32_t drop, uint32_t least, float most)
{
    uint32_t bits = bits_of(x), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint8_t)(sign | 0x7f);
    size = size < bits_of(most) ? size : bits_of(most);
    uint32_t exponent = size >> 23, shift = drop + least - exponent;
    if (exponent >= least)
        return (uint8_t)(sign | (round_even(size, drop) - ((least - 1) << (23 - drop))));
    if (shift > 24) /* less than half of the smallest subnormal */
        return (uint8_t)sign;
    return (uint8_t)(sign | round_even((size & 0x7fffff) | 0x800000, shift)); /* in units of the smallest subnormal */
}

static uint8_t e4m3(float x) { return byte_float(x, 20, 121, 448.0f); }
static uint8_t e5m2(float x) { return byte_float(x, 21, 113, 57344.0f); }

static float from_e4m3(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80) << 24, exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f)
        return float_of(sign | 0x7ff00000);
    if (exponent == 0)
        return float_of(sign | bits_of((float)fraction * 0x1p-9f));
    return float_of(sign | (exponent + 120) << 23 | fraction << 20);
}

static float from_e5m2(uint8_t code) { return kvb_scalar_from_f16((uint16_t)(code << 8)); }

/* ---- i8: x = code * scale, one scale per row --------------------------------------------------------------------
 *
 *   amax    = max |x|, where a NaN counts as 0
 *   scale   = amax * (1 / 127), at most FLT_MAX / 127 (f32) or 65504 (f16), then rounded to the scale's dtype
 *   inverse = 1 / scale, or 0 where that is not finite (a row of zeros, or of nothing above about 2^-121)
 *   code    = x * inverse rounded to nearest even, within [-127, 127]; 0 for a NaN
 *
 * Each step is one float32 operation. So Inf, and what lies beyond an f16 scale, saturates and poisons no neighbour. */

static float number(float x) { return x == x ? x : 0.0f; }

static float i8_scale(const float *from, int64_t dim, int32_t scale_dtype)
{
    float amax = 0.0f;
    for (int64_t d = 0; d < dim; d++) {
        float size = float_of(bits_of(number(from[d])) & 0x7fffffff);
        amax = size > amax ? size : amax;
    }
    float scale = amax * (1.0f / 127.0f), most = scale_dtype == SCALE_F16 ? 65504.0f : FLT_MAX * (1.0f / 127.0f);
    scale = scale < most ? scale : most;
    return scale_dtype == SCALE_F16 ? kvb_scalar_from_f16(kvb_scalar_f16(scale)) : scale;
}

/* x within [-127, 127] */
static int8_t nearest_even(float x)
{
    int whole = (int)x;
    float rest = x - (float)whole;
    if (rest > 0.5f || (rest == 0.5f && (whole & 1)))
        return (int8_t)(whole + 1);
    if (rest < -0.5f || (rest == -0.5f && (whole & 1)))
        return (int8_t)(whole - 1);
    return (int8_t)whole;
}

static int8_t i8_code(float x, float inverse)
{
    float code = number(x) * inverse;
    return nearest_even(code > 127.0f ? 127.0f : code < -127.0f ? -127.0f : code);
}

static float i8_inverse(float scale)
{
    float inverse = 1.0f / scale;
    return inverse <= FLT_MAX ? inverse : 0.0f;
}

static void store_scale(uint8_t *to, int32_t scale_dtype, float scale)
{
    uint16_t half = kvb_scalar_f16(scale);
    if (scale_dtype == SCALE_F16)
        memcpy(to, &half, sizeof half);
    else
        memcpy(to, &scale, sizeof scale);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static void encode_row(int32_t dtype, const float *from, int64_t dim, float inverse, uint8_t *to)
{
    uint16_t *halves = (uint16_t *)(void *)to;
    switch (dtype) {
    case DTYPE_F32:
        memcpy(to, from, (size_t)dim * sizeof *from);
        break;
    case DTYPE_F16:
        for (int64_t d = 0; d < dim; d++)
            halves[d] = kvb_scalar_f16(from[d]);
        break;
    case DTYPE_BF16:
        for (int64_t d = 0; d < dim; d++)
            halves[d] = kvb_scalar_bf16(from[d]);
        break;
    case DTYPE_I8:
        for (int64_t d = 0; d < dim; d++)
            to[d] = (uint8_t)i8_code(from[d], inverse);
        break;
    case DTYPE_E4M3:
        for (int64_t d = 0; d < dim; d++)
            to[d] = e4m3(from[d]);
        break;
    case DTYPE_E5M2:
        for (int64_t d = 0; d < dim; d++)
            to[d] = e5m2(from[d]);
        break;
    }
}

void kvb_scalar_encode(int32_t dtype, const kvb_encode *rows)
{
    if (kvb_formats[dtype].elements > 1) {
        kvb_scalar_encode_packed(dtype, rows);
        return;
    }
    assert(rows->dim <= DIM_MAX && rows->row_bytes <= DIM_MAX * 4 && rows->row_bytes % LINE == 0);
    _Alignas(LINE) uint8_t row[DIM_MAX * 4];
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *from = rows->from + r * rows->from_stride;
        float scale = 1.0f;
        if (kvb_formats[dtype].scaled) {
            scale = i8_scale(from, rows->dim, rows->scale_dtype);
            store_scale(rows->scale + r * rows->scale_stride, rows->scale_dtype, scale);
        }
        memset(row, 0, (size_t)rows->row_bytes);
        encode_row(dtype, from, rows->dim, i8_inverse(scale), row);
        if (rows->nt)
            stream(rows->to + r * rows->to_stride, row, rows->row_bytes);
        else
            memcpy(rows->to + r * rows->to_stride, row, (size_t)rows->row_bytes);
    }
    if (rows->nt)
        stream_end();
}

void kvb_scalar_decode(int32_t dtype, const uint8_t *row, float scale, int64_t dim, float *to)
{
    if (kvb_formats[dtype].elements > 1) {
        kvb_scalar_decode_packed(dtype, row, dim, to);
        return;
    }
    const uint16_t *halves = (const uint16_t *)(const void *)row;
    switch (dtype) {
    case DTYPE_F32:
        memcpy(to, row, (size_t)dim * sizeof *to);
        break;
    case DTYPE_F16:
        for (int64_t d = 0; d < dim; d++)
            to[d] = kvb_scalar_from_f16(halves[d]);
        break;
    case DTYPE_BF16:
        for (int64_t d = 0; d < dim; d++)
            to[d] = kvb_scalar_from_bf16(halves[d]);
        break;
    case DTYPE_I8:
        for (int64_t d = 0; d < dim; d++)
            to[d] = (float)(int8_t)row[d] * scale;
        break;
    case DTYPE_E4M3:
        for (int64_t d = 0; d < dim; d++)
            to[d] = from_e4m3(row[d]);
        break;
    case DTYPE_E5M2:
        for (int64_t d = 0; d < dim; d++)
            to[d] = from_e5m2(row[d]);
        break;
    }
}
