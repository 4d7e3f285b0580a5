/* 512-bit vectors: AVX-512 F, BW, DQ, VL. The operations that the templates use. */
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || \
    !defined(__AVX512VL__)
#error "this unit needs -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c"
#endif
#include <immintrin.h>

#define TIER kvb_tier_avx512
#define VL 16     /* float lanes */
#define QK_ACC 16 /* accumulators of a QK step: tokens x q_rows */
#define QK_MOST 8 /* most query rows of a QK step */
#define PV_ACC 16 /* accumulators of a PV slice: q_rows x vectors */
#define PV_MOST 8 /* most query rows of a PV slice */
/* two vectors of a row are converted at once, which is less work than one by one */
#define V_PAIR_FLOAT8 1
#define V_SINGLE_e5m2 1 /* not faster in pairs: its conversion is only a shift */
#define V_PAIR_bf16 1
#define V_DEAL_bf16 1 /* one of them has the even elements, the other the odd ones */
/* in groups of eight query rows, four share a vector of q, which so has another layout; v_fours()
 */
#define V_FOURS
/* independent FMA chains: they hide the latency and, with two factors, fit in registers */
#define FLOPS_ACC 24

typedef __m512 vf;

/* Make the compiler compute a, into a register. */
static inline void v_pin(vf a) { __asm__ volatile("" : : "v"(a)); }

static inline vf v_zero(void) { return _mm512_setzero_ps(); }
static inline vf v_set1(float x) { return _mm512_set1_ps(x); }
static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
/* Load four floats, and repeat them four times. */
static inline vf v_fours(const void *p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }
static inline void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); } /* a * b + c */
/* Replace NaN lanes by 0. */
static inline vf v_number(vf a)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a);
}
/* *acc += a * b. In assembly, because compilers copy accumulators, and load b again for every use.
 */
static inline void v_fma_into(vf *acc, vf a, vf b)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*acc) : "v"(a), "v"(b));
}
static inline vf v_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }

/* Return a mask of the first n lanes, n in [0, VL). */
static inline __mmask16 v_first(int n) { return (__mmask16)((1u << n) - 1); }
static inline vf v_keep(vf a, int n) { return _mm512_maskz_mov_ps(v_first(n), a); }
/* Set the lanes from n on to x. */
static inline vf v_fill(vf a, int n, float x)
{
    return _mm512_mask_mov_ps(v_set1(x), v_first(n), a);
}
/* Load n floats, and read no others. */
static inline vf v_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
static inline void v_store_n(float *p, vf a, int n) { _mm512_mask_storeu_ps(p, v_first(n), a); }

static inline float v_hmax(vf a)
{
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_movehdup_ps(m));
    return _mm_cvtss_f32(m);
}
static inline float v_hsum(vf a)
{
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}
static inline vf v_added(vf a, vf b, bool whole) /* whole: lanes are whole numbers, not floats */
{
    return whole ? _mm512_castsi512_ps(
                       _mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)))
                 : _mm512_add_ps(a, b);
}
/* Each 128-bit lane of the result has the sums of a[0], a[1], a[2], a[3] in that lane. */
static inline vf v_sums4(const vf *a, bool whole)
{
    vf s01 = v_added(_mm512_unpacklo_ps(a[0], a[1]), _mm512_unpackhi_ps(a[0], a[1]), whole);
    vf s23 = v_added(_mm512_unpacklo_ps(a[2], a[3]), _mm512_unpackhi_ps(a[2], a[3]), whole);
    __m512d d01 = _mm512_castps_pd(s01), d23 = _mm512_castps_pd(s23);
    __m512d lo = _mm512_unpacklo_pd(d01, d23), hi = _mm512_unpackhi_pd(d01, d23);
    return v_added(_mm512_castpd_ps(lo), _mm512_castpd_ps(hi), whole);
}
/* Return the sums of neighbouring 128-bit lanes: two of a, two of b. */
static inline vf v_sums_lanes(vf a, vf b, bool whole)
{
    return v_added(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd), whole);
}
/* Lane i of the result is the sum of a[i]. Shuffles inside 128-bit lanes come first, because they
 * are faster than those across. */
static inline vf v_sums_of(const vf *a, bool whole)
{
    vf low = v_sums_lanes(v_sums4(a, whole), v_sums4(a + 4, whole), whole);
    return v_sums_lanes(low, v_sums_lanes(v_sums4(a + 8, whole), v_sums4(a + 12, whole), whole),
                        whole);
}
static inline vf v_sums(const vf *a) { return v_sums_of(a, false); }

/* v_round: round to the nearest integer. v_scale2: a * 2^n, for an integer n of at least -126. */
static inline vf v_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Round to the nearest integer, ties away from zero. */
static inline vf v_away(vf a)
{
    __m512i sign = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN));
    /* add the largest value below 1 / 2 */
    __m512i most = _mm512_or_si512(sign, _mm512_castps_si512(v_set1(0x1.fffffep-2f)));
    return _mm512_roundscale_ps(v_add(a, _mm512_castsi512_ps(most)),
                                _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline vf v_scale2(vf a, vf n) { return _mm512_scalef_ps(a, n); }
/* Return a if x >= low or x is NaN, else 0. */
static inline vf v_unless_below(vf a, vf x, vf low)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), a);
}

/* Loads and stores of rows: VL stored elements <-> floats, rounding to nearest even. */
static inline vf v_load_f32(const uint8_t *p) { return _mm512_loadu_ps(p); }
static inline vf v_load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline vf v_load_bf16(const uint8_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
/* Load the even elements, and the odd ones. */
static inline void v_pair_bf16(const uint8_t *p, vf *to)
{
    __m512i both = _mm512_loadu_si512(p);
    to[0] = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
    to[1] = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-0x10000)));
}
/* Deal two consecutive vectors: in each of their 128-bit lanes; across all lanes; and the reverse.
 */
static inline void v_deal_fours(vf *pair)
{
    vf even = _mm512_shuffle_ps(pair[0], pair[1], 0x88);
    pair[1] = _mm512_shuffle_ps(pair[0], pair[1], 0xdd);
    pair[0] = even;
}
static inline void v_deal(vf *pair)
{
    const __m512i order = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    v_deal_fours(pair);
    pair[0] = _mm512_permutexvar_ps(order, pair[0]);
    pair[1] = _mm512_permutexvar_ps(order, pair[1]);
}
static inline void v_undeal(vf *pair)
{
    const __m512i order = _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    vf even = _mm512_permutexvar_ps(order, pair[0]), odd = _mm512_permutexvar_ps(order, pair[1]);
    pair[0] = _mm512_unpacklo_ps(even, odd);
    pair[1] = _mm512_unpackhi_ps(even, odd);
}
static inline vf v_load_i8(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
/* Cells of VL tokens, four bytes each, and one element of every cell. Elements of i8 are at the top
 * of a lane, in units of 2^-24. */
typedef __m512i vcells;
static inline vcells v_load_cells(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline vf v_cell_bf16(vcells a, int element)
{
    __m512i high =
        element ? _mm512_and_si512(a, _mm512_set1_epi32(-0x10000)) : _mm512_slli_epi32(a, 16);
    return _mm512_castsi512_ps(high);
}
static inline vf v_cell_i8(vcells a, int element)
{
    __m512i high = element < 3 ? _mm512_slli_epi32(a, (unsigned)(24 - 8 * element)) : a;
    return _mm512_cvtepi32_ps(element ? _mm512_and_si512(high, _mm512_set1_epi32(-0x1000000))
                                      : high);
}
/* Load the f16 at p into all lanes. */
static inline vf v_half(const uint8_t *p)
{
    int16_t half;
    memcpy(&half, p, sizeof half);
    return _mm512_cvtph_ps(_mm256_set1_epi16(half));
}
/* Load the lower or upper nibbles of VL bytes, less 8. An index uses only its lowest four bits. */
static inline vf v_load_nibbles(const uint8_t *p, bool upper)
{
    const vf values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm512_permutexvar_ps(upper ? _mm512_srli_epi32(codes, 4) : codes, values);
}
static inline void v_store_f32(uint8_t *p, vf a) { _mm512_storeu_ps(p, a); }
static inline void v_store_f16(uint8_t *p, vf a)
{
    __m256i half = _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256((__m256i *)(void *)p, half);
}
/* In integer arithmetic, because vcvtneps2bf16 flushes subnormals. */
static inline void v_store_bf16(uint8_t *p, vf a)
{
    __m512i bits = _mm512_castps_si512(a);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    __m512i high = _mm512_srli_epi32(_mm512_mask_mov_epi32(near, nan, quiet), 16);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(high));
}
/* lanes must be within [-127, 127] */
static inline void v_store_i8(uint8_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}

#include "isa/vec/fp8_avx512.h"
#include "isa/vec/dot_avx512.h"
#include "isa/vec/packs_avx512.h"
#include "isa/vec/floats_avx512.h"

/* Add the 16-bit words of b to those of a. */
static inline vi v_add_words(vi a, vf b) { return _mm512_add_epi16(a, _mm512_castps_si512(b)); }
static inline vi v_load_words(const uint16_t *p) { return _mm512_loadu_si512(p); }
static inline void v_store_words(uint16_t *p, vi a) { _mm512_storeu_si512(p, a); }

/* Store one 64-byte line past the caches. `to` is aligned. */
static inline void v_stream(void *to, const void *from)
{
    _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(from));
}
static inline void v_stream_set(void *to, vf a) { _mm512_stream_ps((float *)to, a); }
static inline void v_stream_end(void) { _mm_sfence(); }
