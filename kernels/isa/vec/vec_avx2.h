/* 256-bit vectors: AVX2, FMA, F16C. The operations that the templates use. */
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "this unit needs -mavx2 -mfma -mf16c"
#endif
#include <immintrin.h>

#define TIER kvb_tier_avx2
#define VL 8      /* float lanes */
#define QK_ACC 8  /* accumulators of a QK step: tokens x q_rows */
#define QK_MOST 4 /* most query rows of a QK step */
#define PV_ACC 8  /* accumulators of a PV slice: q_rows x vectors */
#define PV_MOST 4 /* most query rows of a PV slice */
/* two vectors of a row are converted at once, which is less work than one by one */
#define V_PAIR_FLOAT8 1
#define V_PAIR_bf16 1
#define V_DEAL_bf16 1 /* one of them has the even elements, the other the odd ones */
/* independent FMA chains: they hide the latency and, with two factors, fit in registers */
#define FLOPS_ACC 12

typedef __m256 vf;

/* Make the compiler compute a, into a register. */
static inline void v_pin(vf a) { __asm__ volatile("" : : "x"(a)); }

static inline vf v_zero(void) { return _mm256_setzero_ps(); }
static inline vf v_set1(float x) { return _mm256_set1_ps(x); }
static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); } /* a * b + c */
/* Replace NaN lanes by 0. */
static inline vf v_number(vf a) { return _mm256_and_ps(a, _mm256_cmp_ps(a, a, _CMP_ORD_Q)); }
/* *acc += a * b. In assembly, because compilers copy accumulators, and load b again for every use.
 */
static inline void v_fma_into(vf *acc, vf a, vf b)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*acc) : "x"(a), "x"(b));
}
static inline vf v_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }

/* Return a mask of the first n lanes, n in [0, VL). */
static inline __m256i v_first(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf v_keep(vf a, int n) { return _mm256_and_ps(a, _mm256_castsi256_ps(v_first(n))); }
/* Set the lanes from n on to x. */
static inline vf v_fill(vf a, int n, float x)
{
    return _mm256_blendv_ps(v_set1(x), a, _mm256_castsi256_ps(v_first(n)));
}
/* Load n floats, and read no others. */
static inline vf v_load_n(const float *p, int n) { return _mm256_maskload_ps(p, v_first(n)); }
static inline void v_store_n(float *p, vf a, int n) { _mm256_maskstore_ps(p, v_first(n), a); }

static inline float v_hmax(vf a)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_movehdup_ps(m));
    return _mm_cvtss_f32(m);
}
static inline float v_hsum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}
static inline vf v_add_pairs(vf a, vf b)
{
    __m256d x = _mm256_castps_pd(a), y = _mm256_castps_pd(b);
    return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),
                         _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
}
/* Lane i of the result is the sum of a[i]. */
static inline vf v_sums(const vf *a)
{
    vf s[4];
    for (int i = 0; i < 4; i++) /* unpack, because hadd takes more micro-operations */
        s[i] = _mm256_add_ps(_mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]),
                             _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]));
    vf lo = v_add_pairs(s[0], s[1]), hi = v_add_pairs(s[2], s[3]);
    return _mm256_add_ps(_mm256_permute2f128_ps(lo, hi, 0x20),
                         _mm256_permute2f128_ps(lo, hi, 0x31));
}

/* v_round: round to the nearest integer. v_scale2: a * 2^n, for an integer n of at least -126. */
static inline vf v_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Round to the nearest integer, ties away from zero. */
static inline vf v_away(vf a)
{
    /* add the largest value below 1 / 2 */
    vf most = _mm256_or_ps(_mm256_and_ps(a, v_set1(-0.0f)), v_set1(0x1.fffffep-2f));
    return _mm256_round_ps(v_add(a, most), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline vf v_scale2(vf a, vf n)
{
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}
/* Return a if x >= low or x is NaN, else 0. */
static inline vf v_unless_below(vf a, vf x, vf low)
{
    return _mm256_and_ps(a, _mm256_cmp_ps(x, low, _CMP_NLT_UQ));
}

/* Loads and stores of rows: VL stored elements <-> floats, rounding to nearest even. */
static inline vf v_load_f32(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}
static inline vf v_load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline vf v_load_bf16(const uint8_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
/* Load the even elements, and the odd ones. */
static inline void v_pair_bf16(const uint8_t *p, vf *to)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)p);
    to[0] = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
    to[1] = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(-0x10000)));
}
/* Deal two consecutive vectors in the same way, and the reverse. */
static inline void v_deal(vf *pair)
{
    __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(pair[0], pair[1], 0x88));
    __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(pair[0], pair[1], 0xdd));
    pair[0] = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    pair[1] = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
}
static inline void v_undeal(vf *pair)
{
    vf low = _mm256_unpacklo_ps(pair[0], pair[1]), high = _mm256_unpackhi_ps(pair[0], pair[1]);
    pair[0] = _mm256_permute2f128_ps(low, high, 0x20);
    pair[1] = _mm256_permute2f128_ps(low, high, 0x31);
}
static inline vf v_load_i8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
/* Cells of VL tokens, four bytes each, and one element of every cell. Elements of i8 are at the top
 * of a lane, in units of 2^-24. */
typedef __m256i vcells;
static inline vcells v_load_cells(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline vf v_cell_bf16(vcells a, int element)
{
    __m256i high =
        element ? _mm256_and_si256(a, _mm256_set1_epi32(-0x10000)) : _mm256_slli_epi32(a, 16);
    return _mm256_castsi256_ps(high);
}
static inline vf v_cell_i8(vcells a, int element)
{
    __m256i high = element < 3 ? _mm256_slli_epi32(a, 24 - 8 * element) : a;
    return _mm256_cvtepi32_ps(element ? _mm256_and_si256(high, _mm256_set1_epi32(-0x1000000))
                                      : high);
}
/* Load the f16 at p into all lanes. */
static inline vf v_half(const uint8_t *p)
{
    int16_t half;
    memcpy(&half, p, sizeof half);
    return _mm256_cvtph_ps(_mm_set1_epi16(half));
}
/* Load the lower or upper nibbles of VL bytes, less 8. */
static inline vf v_load_nibbles(const uint8_t *p, bool upper)
{
    __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    codes = upper ? _mm256_srli_epi32(codes, 4) : _mm256_and_si256(codes, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(codes, _mm256_set1_epi32(8)));
}
static inline void v_store_f32(uint8_t *p, vf a) { _mm256_storeu_ps((float *)(void *)p, a); }
static inline void v_store_f16(uint8_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline void v_store_bf16(uint8_t *p, vf a)
{
    __m256i bits = _mm256_castps_si256(a);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(packed));
}
/* lanes must be within [-127, 127] */
static inline void v_store_i8(uint8_t *p, vf a)
{
    __m256i i = _mm256_cvtps_epi32(a);
    __m128i wide = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(wide, wide));
}

#include "isa/vec/fp8_avx2.h"
#include "isa/vec/dot_avx2.h"

/* Add the 16-bit words of b to those of a. */
static inline vi v_add_words(vi a, vf b) { return _mm256_add_epi16(a, _mm256_castps_si256(b)); }
static inline vi v_load_words(const uint16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline void v_store_words(uint16_t *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}

/* Store one 64-byte line past the caches. `to` is aligned. */
static inline void v_stream(void *to, const void *from)
{
    for (int i = 0; i < 4; i++)
        _mm_stream_si128((__m128i *)to + i, _mm_loadu_si128((const __m128i *)from + i));
}
static inline void v_stream_set(void *to, vf a)
{
    _mm256_stream_ps((float *)to, a);
    _mm256_stream_ps((float *)to + VL, a);
}
static inline void v_stream_end(void) { _mm_sfence(); }
