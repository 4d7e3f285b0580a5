/* 128-bit vectors: Advanced SIMD of AArch64. The operations that the templates use. */
#if !defined(__aarch64__) || !defined(__ARM_NEON)
#error "this unit needs AArch64 with Advanced SIMD"
#endif
#include <arm_neon.h>

#define TIER kvb_tier_neon
#define VL 4      /* float lanes */
#define QK_ACC 16 /* accumulators of a QK step: tokens x q_rows */
#define QK_MOST 4 /* most query rows of a QK step */
#define PV_ACC 16 /* accumulators of a PV slice: q_rows x vectors */
#define PV_MOST 4 /* most query rows of a PV slice */
/* independent FMA chains: they hide the latency and, with two factors, fit in registers */
#define FLOPS_ACC 24

typedef float32x4_t vf;

/* Make the compiler compute a, into a register. */
static inline void v_pin(vf a) { __asm__ volatile("" : : "w"(a)); }

static inline vf v_zero(void) { return vdupq_n_f32(0.0f); }
static inline vf v_set1(float x) { return vdupq_n_f32(x); }
static inline vf v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, vf a) { vst1q_f32(p, a); }
static inline vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf v_max(vf a, vf b) { return vmaxq_f32(a, b); }
static inline vf v_min(vf a, vf b) { return vminq_f32(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); } /* a * b + c */
/* Replace NaN lanes by 0. */
static inline vf v_number(vf a)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vceqq_f32(a, a)));
}
/* *acc += a * b. Not in assembly as in vec_avx2.h: with 32 registers the compiler copies nothing,
 * and folds broadcasts into it. */
static inline void v_fma_into(vf *acc, vf a, vf b) { *acc = v_fma(a, b, *acc); }
static inline vf v_abs(vf a) { return vabsq_f32(a); }

/* Return a mask of the first n lanes, n in [0, VL). */
static inline uint32x4_t v_first(int n)
{
    return vcgtq_s32(vdupq_n_s32(n), (int32x4_t){0, 1, 2, 3});
}
static inline vf v_keep(vf a, int n)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), v_first(n)));
}
/* Set the lanes from n on to x. */
static inline vf v_fill(vf a, int n, float x) { return vbslq_f32(v_first(n), a, v_set1(x)); }
/* Load n floats, and read no others. */
static inline vf v_load_n(const float *p, int n)
{
    return (vf){n > 0 ? p[0] : 0.0f, n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, 0.0f};
}
static inline void v_store_n(float *p, vf a, int n)
{
    if (n > 0)
        vst1q_lane_f32(p, a, 0);
    if (n > 1)
        vst1q_lane_f32(p + 1, a, 1);
    if (n > 2)
        vst1q_lane_f32(p + 2, a, 2);
}

static inline float v_hmax(vf a) { return vmaxvq_f32(a); }
static inline float v_hsum(vf a) { return vaddvq_f32(a); }
/* Lane i of the result is the sum of a[i]. */
static inline vf v_sums(const vf *a)
{
    return vpaddq_f32(vpaddq_f32(a[0], a[1]), vpaddq_f32(a[2], a[3]));
}

/* v_round: round to the nearest integer. v_scale2: a * 2^n, for an integer n of at least -126. */
static inline vf v_round(vf a) { return vrndnq_f32(a); }
/* Round to the nearest integer, ties away from zero. */
static inline vf v_away(vf a) { return vrndaq_f32(a); }
static inline vf v_scale2(vf a, vf n)
{
    return vreinterpretq_f32_s32(
        vaddq_s32(vreinterpretq_s32_f32(a), vshlq_n_s32(vcvtnq_s32_f32(n), 23)));
}
/* Return a if x >= low or x is NaN, else 0. */
static inline vf v_unless_below(vf a, vf x, vf low)
{
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), vcltq_f32(x, low)));
}

/* Loads and stores of rows: VL stored elements <-> floats, rounding to nearest even. */
static inline vf v_load_f32(const uint8_t *p) { return vld1q_f32((const float *)(const void *)p); }
static inline vf v_load_f16(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}
static inline vf v_load_bf16(const uint8_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}
static inline vf v_load_i8(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    int16x8_t wide = vmovl_s8(vcreate_s8(four));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}
static inline uint32x2_t v_load_four(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vcreate_u32(four);
}
/* 8-bit floats: the operations that isa/row/float8.tmpl.c uses. */
/* The sign fills all bits above the exponent. Set the bit `bit` to the carry that adding `step`
 * gives. */
static inline int16x4_t v_carried(int16x4_t half, int step, int bit)
{
    int16x4_t sum = vadd_s16(half, vdup_n_s16((int16_t)step));
    return veor_s16(half, vand_s16(sum, vdup_n_s16((int16_t)bit)));
}
INLINE vf v_load_float8(const uint8_t *p, const int exponent, const int overflow)
{
    uint8x8_t codes = vreinterpret_u8_u32(v_load_four(p));
    if (exponent == 5)
        return vcvt_f32_f16(vreinterpret_f16_u8(vzip1_u8(vdup_n_u8(0), codes)));
    int16x4_t half = vget_low_s16(vmovl_s8(vreinterpret_s8_u8(codes)));
    half = half << vdup_n_s16((int16_t)(3 + exponent));
    half = v_carried(half, overflow, 1 << (10 + exponent));
    half = exponent < 4 ? v_carried(half, 1 << 13, 1 << 14) : half;
    return vcvt_f32_f16(vreinterpret_f16_s16(half));
}
/* Cells of VL tokens, four bytes each, and one element of every cell. Elements of i8 are at the top
 * of a lane, in units of 2^-24. */
typedef int32x4_t vcells;
static inline vcells v_load_cells(const uint8_t *p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
/* Move an element of `width` bits to the top of each lane; lower bits are zero. */
static inline vcells v_cell_top(vcells a, int element, int width)
{
    vcells high = vshlq_s32(a, vdupq_n_s32(32 - width * (element + 1)));
    return element ? vandq_s32(high, vshlq_s32(vdupq_n_s32(-1), vdupq_n_s32(32 - width))) : high;
}
static inline vf v_cell_bf16(vcells a, int element)
{
    return vreinterpretq_f32_s32(v_cell_top(a, element, 16));
}
static inline vf v_cell_i8(vcells a, int element)
{
    return vcvtq_f32_s32(v_cell_top(a, element, 8));
}
/* Load the f16 at p into all lanes. */
static inline vf v_half(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(half)));
}
/* Load the lower or upper nibbles of VL bytes, less 8. */
static inline vf v_load_nibbles(const uint8_t *p, bool upper)
{
    uint8x8_t codes = vreinterpret_u8_u32(v_load_four(p));
    codes = upper ? vshr_n_u8(codes, 4) : vand_u8(codes, vdup_n_u8(15));
    int8x8_t less = vsub_s8(vreinterpret_s8_u8(codes), vdup_n_s8(8));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(less))));
}
static inline void v_store_f32(uint8_t *p, vf a) { vst1q_f32((float *)(void *)p, a); }
static inline void v_store_f16(uint8_t *p, vf a)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(a)));
}
static inline void v_store_bf16(uint8_t *p, vf a)
{
    uint32x4_t bits = vreinterpretq_u32_f32(a);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t near = vaddq_u32(vaddq_u32(bits, odd), vdupq_n_u32(0x7fff));
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
    uint32x4_t high = vbslq_u32(vceqq_f32(a, a), near, quiet);
    vst1_u8(p, vreinterpret_u8_u16(vshrn_n_u32(high, 16)));
}
/* lanes must be within [-127, 127] */
static inline void v_store_i8(uint8_t *p, vf a)
{
    int16x4_t wide = vmovn_s32(vcvtnq_s32_f32(a));
    uint32_t four = vget_lane_u32(vreinterpret_u32_s8(vmovn_s16(vcombine_s16(wide, wide))), 0);
    memcpy(p, &four, sizeof four);
}
/* Round to a format with `steps` values from one power of two to the next. Below `least` values are
 * as far apart as at `least`. The result is at most `most`. Adding 2^23 times the distance drops
 * all smaller bits. A NaN becomes all ones. */
static inline vf v_round_within(vf a, float steps, float least, float most)
{
    vf size = v_min(v_abs(a), v_set1(most));
    uint32x4_t exponent = vandq_u32(vreinterpretq_u32_f32(size), vdupq_n_u32(0x7f800000));
    vf power = v_max(vreinterpretq_f32_u32(exponent), v_set1(least));
    vf far = v_mul(power, v_set1(0x1p23f / steps)), near = v_sub(v_add(size, far), far);
    uint32x4_t bits =
        vbslq_u32(vceqq_f32(a, a), vreinterpretq_u32_f32(near), vdupq_n_u32(0x7fffffff));
    uint32x4_t sign = vandq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(0x80000000));
    return vreinterpretq_f32_u32(vorrq_u32(bits, sign));
}
/* Store the codes of values whose f16 has no bits below the code. */
static inline void v_store_float8(uint8_t *p, vf a, int exponent)
{
    uint16x4_t half = vreinterpret_u16_f16(vcvt_f16_f32(a));
    uint16x4_t size = half >> vdup_n_u16((uint16_t)(3 + exponent));
    uint16x4_t sign = vand_u16(vshr_n_u16(half, 8), vdup_n_u16(0x80));
    uint16x4_t code = vorr_u16(vand_u16(size, vdup_n_u16(0x7f)), sign);
    uint32_t four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(code, code))), 0);
    memcpy(p, &four, sizeof four);
}

#include "isa/vec/dot_neon.h"
#include "isa/vec/floats_neon.h"

/* Add the 16-bit words of b to those of a. */
static inline vi v_add_words(vi a, vf b)
{
    return vreinterpretq_s32_u16(vaddq_u16(vreinterpretq_u16_s32(a), vreinterpretq_u16_f32(b)));
}
static inline vi v_load_words(const uint16_t *p) { return vreinterpretq_s32_u16(vld1q_u16(p)); }
static inline void v_store_words(uint16_t *p, vi a) { vst1q_u16(p, vreinterpretq_u16_s32(a)); }

/* Store one 64-byte line past the caches. `to` is aligned. */
static inline void v_stream_pair(void *to, uint8x16_t a, uint8x16_t b)
{
    __asm__("stnp %q1, %q2, %0" : "=Q"(*(uint8_t (*)[32])to) : "w"(a), "w"(b));
}
static inline void v_stream(void *to, const void *from)
{
    for (int b = 0; b < 64; b += 32)
        v_stream_pair((uint8_t *)to + b, vld1q_u8((const uint8_t *)from + b),
                      vld1q_u8((const uint8_t *)from + b + 16));
}
static inline void v_stream_set(void *to, vf a)
{
    for (int b = 0; b < 64; b += 32)
        v_stream_pair((uint8_t *)to + b, vreinterpretq_u8_f32(a), vreinterpretq_u8_f32(a));
}
static inline void v_stream_end(void) {} /* stnp is ordered like any other store */
