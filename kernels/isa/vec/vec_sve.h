/* SVE vectors of SVE_BITS bits. The length is fixed when the unit is compiled: only such vectors
 * can be in arrays. The operations that the templates use. vec_sve256.h and vec_sve512.h include
 * it. */
#if !defined(__ARM_FEATURE_SVE) || __ARM_FEATURE_SVE_BITS != SVE_BITS
#error "this unit needs -march=armv8.2-a+sve, and -msve-vector-bits of its own length"
#endif
#include <arm_sve.h>

#define VL (SVE_BITS / 32) /* float lanes */
#define QK_ACC 16          /* accumulators of a QK step: tokens x q_rows */
#define QK_MOST 8          /* most query rows of a QK step */
/* one query row uses a row's vector as soon as it is loaded: else 16 rows and 16 sums spill */
#define QK_AT_ONCE
#define PV_ACC 16 /* accumulators of a PV slice: q_rows x vectors */
#define PV_MOST 8 /* most query rows of a PV slice */
/* independent FMA chains: they hide the latency and, with two factors, fit in registers */
#define FLOPS_ACC 24

#define FIXED __attribute__((arm_sve_vector_bits(SVE_BITS)))
typedef svfloat32_t vf FIXED;
typedef svint32_t vi FIXED;
typedef svuint32_t vu FIXED;

/* Make the compiler compute a, into a register. Clang has registers only for the type without a
 * fixed length. */
static inline void v_pin(svfloat32_t a) { __asm__ volatile("" : : "w"(a)); }

/* Masks of all lanes, and of the first n, n in [0, VL). */
static inline svbool_t v_all(void) { return svptrue_b32(); }
static inline svbool_t v_first(int n) { return svwhilelt_b32_s32(0, n); }

static inline vf v_zero(void) { return svdup_n_f32(0.0f); }
static inline vf v_set1(float x) { return svdup_n_f32(x); }
static inline vf v_load(const float *p) { return svld1_f32(v_all(), p); }
static inline void v_store(float *p, vf a) { svst1_f32(v_all(), p, a); }
static inline vf v_add(vf a, vf b) { return svadd_f32_x(v_all(), a, b); }
static inline vf v_sub(vf a, vf b) { return svsub_f32_x(v_all(), a, b); }
static inline vf v_mul(vf a, vf b) { return svmul_f32_x(v_all(), a, b); }
static inline vf v_div(vf a, vf b) { return svdiv_f32_x(v_all(), a, b); }
static inline vf v_max(vf a, vf b) { return svmax_f32_x(v_all(), a, b); }
static inline vf v_min(vf a, vf b) { return svmin_f32_x(v_all(), a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return svmla_f32_x(v_all(), c, a, b); } /* a * b + c */
/* Replace NaN lanes by 0. */
static inline vf v_number(vf a) { return svdup_n_f32_m(a, svcmpuo_f32(v_all(), a, a), 0.0f); }
/* *acc += a * b. Not in assembly as in vec_avx2.h: with 32 registers the compiler copies nothing.
 */
static inline void v_fma_into(vf *acc, vf a, vf b) { *acc = v_fma(a, b, *acc); }
static inline vf v_abs(vf a) { return svabs_f32_x(v_all(), a); }

static inline vf v_keep(vf a, int n) { return svsel_f32(v_first(n), a, v_zero()); }
/* Set the lanes from n on to x. */
static inline vf v_fill(vf a, int n, float x) { return svsel_f32(v_first(n), a, v_set1(x)); }
/* Load n floats, and read no others. */
static inline vf v_load_n(const float *p, int n) { return svld1_f32(v_first(n), p); }
static inline void v_store_n(float *p, vf a, int n) { svst1_f32(v_first(n), p, a); }

static inline float v_hmax(vf a) { return svmaxv_f32(v_all(), a); }
static inline float v_hsum(vf a) { return svaddv_f32(v_all(), a); }
/* Return the sums of neighbouring lanes: those of a, then those of b. */
static inline vf v_add_pairs(vf a, vf b) { return v_add(svuzp1_f32(a, b), svuzp2_f32(a, b)); }
static inline vf v_sums4(const vf *a)
{
    return v_add_pairs(v_add_pairs(a[0], a[1]), v_add_pairs(a[2], a[3]));
}
static inline vf v_sums8(const vf *a) { return v_add_pairs(v_sums4(a), v_sums4(a + 4)); }
/* Lane i of the result is the sum of a[i]. */
#if VL == 8
static inline vf v_sums(const vf *a) { return v_sums8(a); }
#else
static inline vf v_sums(const vf *a) { return v_add_pairs(v_sums8(a), v_sums8(a + 8)); }
#endif

/* v_round: round to the nearest integer. v_scale2: a * 2^n, for an integer n of at least -126. */
static inline vf v_round(vf a) { return svrintn_f32_x(v_all(), a); }
/* Round to the nearest integer, ties away from zero. */
static inline vf v_away(vf a) { return svrinta_f32_x(v_all(), a); }
static inline vf v_scale2(vf a, vf n)
{
    return svscale_f32_x(v_all(), a, svcvt_s32_f32_x(v_all(), n));
}
/* Return a if x >= low or x is NaN, else 0. */
static inline vf v_unless_below(vf a, vf x, vf low)
{
    return svdup_n_f32_m(a, svcmplt_f32(v_all(), x, low), 0.0f);
}

/* Loads and stores of rows: VL stored elements <-> floats, rounding to nearest even. Loads widen
 * and stores narrow each lane. */
static inline vf v_load_f32(const uint8_t *p)
{
    return svld1_f32(v_all(), (const float *)(const void *)p);
}
static inline vu v_load_halves(const uint8_t *p)
{
    return svld1uh_u32(v_all(), (const uint16_t *)(const void *)p);
}
static inline vf v_load_f16(const uint8_t *p)
{
    return svcvt_f32_f16_x(v_all(), svreinterpret_f16_u32(v_load_halves(p)));
}
static inline vf v_load_bf16(const uint8_t *p)
{
    return svreinterpret_f32_u32(svlsl_n_u32_x(v_all(), v_load_halves(p), 16));
}
static inline vf v_load_i8(const uint8_t *p)
{
    return svcvt_f32_s32_x(v_all(), svld1sb_s32(v_all(), (const int8_t *)(const void *)p));
}
/* 8-bit floats: the operations that isa/row/float8.tmpl.c uses. */
/* The sign fills all bits above the exponent. Set the bit `bit` to the carry that adding `step`
 * gives. */
static inline vu v_carried(vu half, uint32_t step, uint32_t bit)
{
    vu carry = svand_n_u32_x(v_all(), svadd_n_u32_x(v_all(), half, step), bit);
    return sveor_u32_x(v_all(), half, carry);
}
INLINE vf v_load_float8(const uint8_t *p, const int exponent, const int overflow)
{
    vi bytes = svld1sb_s32(v_all(), (const int8_t *)(const void *)p);
    vu half = svlsl_n_u32_x(v_all(), svreinterpret_u32_s32(bytes), (uint32_t)(3 + exponent));
    half = exponent < 5 ? v_carried(half, (uint32_t)overflow, 1u << (10 + exponent)) : half;
    half = exponent < 4 ? v_carried(half, 1u << 13, 1u << 14) : half;
    return svcvt_f32_f16_x(v_all(), svreinterpret_f16_u32(half));
}
/* Cells of VL tokens, four bytes each, and one element of every cell. Elements of i8 are at the top
 * of a lane, in units of 2^-24. */
typedef vi vcells;
static inline vcells v_load_cells(const uint8_t *p)
{
    return svld1_s32(v_all(), (const int32_t *)(const void *)p);
}
/* Move an element of `width` bits to the top of each lane; lower bits are zero. */
static inline vcells v_cell_top(vcells a, int element, int width)
{
    vcells high = svlsl_n_s32_x(v_all(), a, (uint32_t)(32 - width * (element + 1)));
    if (!element)
        return high;
    return svand_n_s32_x(v_all(), high, (int32_t)(~0u << (32 - width)));
}
static inline vf v_cell_bf16(vcells a, int element)
{
    return svreinterpret_f32_s32(v_cell_top(a, element, 16));
}
static inline vf v_cell_i8(vcells a, int element)
{
    return svcvt_f32_s32_x(v_all(), v_cell_top(a, element, 8));
}
/* Load the f16 at p into all lanes. */
static inline vf v_half(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return svcvt_f32_f16_x(v_all(), svreinterpret_f16_u32(svdup_n_u32(half)));
}
/* Load the lower or upper nibbles of VL bytes, less 8. */
static inline vf v_load_nibbles(const uint8_t *p, bool upper)
{
    vu codes = svld1ub_u32(v_all(), p);
    codes = upper ? (vu)svlsr_n_u32_x(v_all(), codes, 4) : (vu)svand_n_u32_x(v_all(), codes, 15);
    return svcvt_f32_s32_x(v_all(), svsub_n_s32_x(v_all(), svreinterpret_s32_u32(codes), 8));
}
static inline void v_store_f32(uint8_t *p, vf a) { svst1_f32(v_all(), (float *)(void *)p, a); }
/* Store the lower half of each lane. */
static inline void v_store_halves(uint8_t *p, vu a)
{
    svst1h_u32(v_all(), (uint16_t *)(void *)p, a);
}
static inline void v_store_f16(uint8_t *p, vf a)
{
    v_store_halves(p, svreinterpret_u32_f16(svcvt_f16_f32_x(v_all(), a)));
}
/* In integer arithmetic, because not every CPU with SVE has bfcvt. */
static inline void v_store_bf16(uint8_t *p, vf a)
{
    vu bits = svreinterpret_u32_f32(a);
    vu odd = svand_n_u32_x(v_all(), svlsr_n_u32_x(v_all(), bits, 16), 1);
    vu near = svadd_n_u32_x(v_all(), svadd_u32_x(v_all(), bits, odd), 0x7fff);
    vu quiet = svorr_n_u32_x(v_all(), bits, 0x00400000);
    vu high = svsel_u32(svcmpuo_f32(v_all(), a, a), quiet, near);
    v_store_halves(p, svlsr_n_u32_x(v_all(), high, 16));
}
/* lanes must be within [-127, 127]; the conversion alone would round towards zero */
static inline void v_store_i8(uint8_t *p, vf a)
{
    svst1b_s32(v_all(), (int8_t *)(void *)p, svcvt_s32_f32_x(v_all(), v_round(a)));
}
/* Round to a format with `steps` values from one power of two to the next. Below `least` values are
 * as far apart as at `least`. The result is at most `most`. Adding 2^23 times the distance drops
 * all smaller bits. A NaN becomes all ones. */
static inline vf v_round_within(vf a, float steps, float least, float most)
{
    vf size = v_min(v_abs(a), v_set1(most));
    vu exponent = svand_n_u32_x(v_all(), svreinterpret_u32_f32(size), 0x7f800000);
    vf power = v_max(svreinterpret_f32_u32(exponent), v_set1(least));
    vf far = v_mul(power, v_set1(0x1p23f / steps)), near = v_sub(v_add(size, far), far);
    vu bits = svdup_n_u32_m(svreinterpret_u32_f32(near), svcmpuo_f32(v_all(), a, a), 0x7fffffff);
    vu sign = svand_n_u32_x(v_all(), svreinterpret_u32_f32(a), 0x80000000);
    return svreinterpret_f32_u32(svorr_u32_x(v_all(), bits, sign));
}
/* Store the codes of values whose f16 has no bits below the code. */
static inline void v_store_float8(uint8_t *p, vf a, int exponent)
{
    vu half = svreinterpret_u32_f16(svcvt_f16_f32_x(v_all(), a));
    vu shifted = svlsr_n_u32_x(v_all(), half, (uint32_t)(3 + exponent));
    vu size = svand_n_u32_x(v_all(), shifted, 0x7f);
    vu sign = svand_n_u32_x(v_all(), svlsr_n_u32_x(v_all(), half, 8), 0x80);
    svst1b_u32(v_all(), p, svorr_u32_x(v_all(), size, sign));
}

#include "isa/vec/dot_sve.h"
#include "isa/vec/floats_sve.h"

/* Add the 16-bit words of b to those of a. */
static inline vi v_add_words(vi a, vf b)
{
    const svuint16_t words = svreinterpret_u16_f32(b);
    return svreinterpret_s32_u16(svadd_u16_x(svptrue_b16(), svreinterpret_u16_s32(a), words));
}
static inline vi v_load_words(const uint16_t *p)
{
    return svreinterpret_s32_u16(svld1_u16(svptrue_b16(), p));
}
static inline void v_store_words(uint16_t *p, vi a)
{
    svst1_u16(svptrue_b16(), p, svreinterpret_u16_s32(a));
}

/* Store one 64-byte line past the caches. `to` is aligned. */
static inline void v_stream(void *to, const void *from)
{
    for (int i = 0; i < 64 / 4; i += VL)
        svstnt1_f32(v_all(), (float *)to + i, svld1_f32(v_all(), (const float *)from + i));
}
static inline void v_stream_set(void *to, vf a)
{
    for (int i = 0; i < 64 / 4; i += VL)
        svstnt1_f32(v_all(), (float *)to + i, a);
}
static inline void v_stream_end(void) {} /* stnt1 is ordered like any other store */
