/* isa/vec/vec_avx512.h with every 512-bit instruction emulated lane by lane, for a CPU that has
 * only AVX2: so the logic of the tier can be tested where the tier cannot run. Written from the
 * operation sections of Intel's manual. */
/* Include immintrin.h only up to AVX2, so that the other names are free. */
#define _IMMINTRIN_H_INCLUDED
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
typedef union zmm {
    float f[16];
    double d[8];
    int32_t i[16];
    uint32_t u[16];
    uint64_t q[8];
    int16_t w[32];
    uint16_t h[32];
    uint8_t b[64];
} zmm;
typedef zmm __m512, __m512i, __m512d;
typedef uint16_t __mmask16;

/* The body of a function that sets all lanes of `r`. */
#define LANES_OF(count, set)        \
    zmm r;                          \
    for (int i = 0; i < count; i++) \
        set;                        \
    return r
#define EACH(set) LANES_OF(16, set)
#define PAIRS(set) LANES_OF(8, set)
#define SHORTS(set) LANES_OF(32, set)
#define ON(mask) ((mask) >> i & 1)

static inline zmm _mm512_set1_ps(float x) { EACH(r.f[i] = x); }
static inline zmm _mm512_setzero_ps(void) { return _mm512_set1_ps(0.0f); }
static inline zmm _mm512_mask_set1_epi32(zmm a, int mask, int x)
{
    EACH(r.u[i] = mask >> i & 1 ? (uint32_t)x : a.u[i]);
}
static inline zmm _mm512_add_ps(zmm a, zmm b) { EACH(r.f[i] = a.f[i] + b.f[i]); }
static inline zmm _mm512_sub_ps(zmm a, zmm b) { EACH(r.f[i] = a.f[i] - b.f[i]); }
static inline zmm _mm512_mul_ps(zmm a, zmm b) { EACH(r.f[i] = a.f[i] * b.f[i]); }
static inline zmm _mm512_div_ps(zmm a, zmm b) { EACH(r.f[i] = a.f[i] / b.f[i]); }
static inline zmm _mm512_max_ps(zmm a, zmm b) { EACH(r.f[i] = a.f[i] > b.f[i] ? a.f[i] : b.f[i]); }
static inline zmm _mm512_min_ps(zmm a, zmm b) { EACH(r.f[i] = a.f[i] < b.f[i] ? a.f[i] : b.f[i]); }
static inline zmm _mm512_fmadd_ps(zmm a, zmm b, zmm c)
{
    EACH(r.f[i] = fmaf(a.f[i], b.f[i], c.f[i]));
}
static inline zmm _mm512_andnot_ps(zmm a, zmm b) { EACH(r.u[i] = ~a.u[i] & b.u[i]); }
static inline zmm _mm512_set1_epi32(int32_t x) { EACH(r.i[i] = x); }
static inline zmm _mm512_add_epi32(zmm a, zmm b) { EACH(r.u[i] = a.u[i] + b.u[i]); }
static inline zmm _mm512_sub_epi32(zmm a, zmm b) { EACH(r.u[i] = a.u[i] - b.u[i]); }
static inline zmm _mm512_and_si512(zmm a, zmm b) { EACH(r.u[i] = a.u[i] & b.u[i]); }
static inline zmm _mm512_or_si512(zmm a, zmm b) { EACH(r.u[i] = a.u[i] | b.u[i]); }
static inline zmm _mm512_slli_epi32(zmm a, unsigned n) { EACH(r.u[i] = a.u[i] << n); }
static inline zmm _mm512_srli_epi32(zmm a, unsigned n) { EACH(r.u[i] = a.u[i] >> n); }

static inline __m256 _mm512_extractf32x8_ps(zmm a, int half)
{
    return _mm256_loadu_ps(a.f + 8 * half);
}
static inline zmm lanes_join(__m256 low, __m256 high)
{
    zmm r;
    _mm256_storeu_ps(r.f, low);
    _mm256_storeu_ps(r.f + 8, high);
    return r;
}

/* ---- masks ----------------------------------------------------------------------------------- */

static inline zmm _mm512_mask_mov_ps(zmm from, uint16_t k, zmm a)
{
    EACH(r.u[i] = ON(k) ? a.u[i] : from.u[i]);
}
static inline zmm _mm512_maskz_mov_ps(uint16_t k, zmm a) { EACH(r.u[i] = ON(k) ? a.u[i] : 0); }
#define MASK_OF_HALF(a, b, half, how) \
    _mm256_movemask_ps(               \
        _mm256_cmp_ps(_mm512_extractf32x8_ps(a, half), _mm512_extractf32x8_ps(b, half), how))
#define _mm512_cmp_ps_mask(a, b, how) \
    ((uint16_t)(MASK_OF_HALF(a, b, 0, how) | MASK_OF_HALF(a, b, 1, how) << 8))

/* ---- memory: what a mask excludes is not touched, what bypasses the caches must be aligned --- */

static inline zmm _mm512_loadu_ps(const void *p)
{
    zmm r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline void _mm512_storeu_ps(void *p, zmm a) { memcpy(p, &a, sizeof a); }
static inline zmm _mm512_maskz_loadu_ps(uint16_t k, const float *p)
{
    EACH(r.f[i] = ON(k) ? p[i] : 0.0f);
}
static inline void _mm512_mask_storeu_ps(float *p, uint16_t k, zmm a)
{
    for (int i = 0; i < 16; i++)
        if (ON(k))
            p[i] = a.f[i];
}
static inline void _mm512_stream_ps(void *p, zmm a)
{
    if ((uintptr_t)p % sizeof a)
        __builtin_trap();
    memcpy(p, &a, sizeof a);
}

/* ---- shuffles -------------------------------------------------------------------------------- */

static inline zmm _mm512_unpacklo_ps(zmm a, zmm b)
{
    EACH(r.f[i] = (i & 1 ? b : a).f[(i & 12) + (i >> 1 & 1)]);
}
static inline zmm _mm512_unpackhi_ps(zmm a, zmm b)
{
    EACH(r.f[i] = (i & 1 ? b : a).f[(i & 12) + 2 + (i >> 1 & 1)]);
}
static inline zmm _mm512_unpacklo_pd(zmm a, zmm b) { PAIRS(r.d[i] = (i & 1 ? b : a).d[i & 6]); }
static inline zmm _mm512_unpackhi_pd(zmm a, zmm b)
{
    PAIRS(r.d[i] = (i & 1 ? b : a).d[(i & 6) + 1]);
}
static inline zmm _mm512_shuffle_f32x4(zmm a, zmm b, int from)
{
    EACH(r.f[i] = (i < 8 ? a : b).f[(from >> i / 4 * 2 & 3) * 4 + i % 4]);
}
static inline zmm _mm512_shuffle_ps(zmm a, zmm b, int from)
{
    EACH(r.f[i] = (i & 2 ? b : a).f[(i & 12) + (from >> i % 4 * 2 & 3)]);
}
static inline zmm lanes_repeated(const void *p, size_t bytes)
{
    zmm r;
    for (size_t at = 0; at < sizeof r; at += bytes)
        memcpy(r.b + at, p, bytes);
    return r;
}
static inline zmm _mm512_broadcast_f32x4(__m128 a) { return lanes_repeated(&a, sizeof a); }
static inline zmm _mm512_broadcast_i32x4(__m128i a) { return lanes_repeated(&a, sizeof a); }
static inline zmm _mm512_broadcast_i64x4(__m256i a) { return lanes_repeated(&a, sizeof a); }
static inline zmm _mm512_broadcastq_epi64(__m128i a) { return lanes_repeated(&a, sizeof a / 2); }

/* ---- conversions ----------------------------------------------------------------------------- */

/* a * 2^floor(n), rounded once */
static inline float scaled(float a, float n)
{
    if (n != n)
        return n;
    return ldexpf(a, (int)fmaxf(fminf(floorf(n), 1000.0f), -1000.0f));
}
static inline zmm _mm512_scalef_ps(zmm a, zmm n) { EACH(r.f[i] = scaled(a.f[i], n.f[i])); }
/* `how` must not ask for bits of the fraction */
#define _mm512_roundscale_ps(a, how)                               \
    lanes_join(_mm256_round_ps(_mm512_extractf32x8_ps(a, 0), how), \
               _mm256_round_ps(_mm512_extractf32x8_ps(a, 1), how))
static inline zmm _mm512_cvtepi32_ps(zmm a) { EACH(r.f[i] = (float)a.i[i]); }
static inline zmm _mm512_cvtps_epi32(zmm a)
{
    __m256i low = _mm256_cvtps_epi32(_mm512_extractf32x8_ps(a, 0)),
            high = _mm256_cvtps_epi32(_mm512_extractf32x8_ps(a, 1));
    return lanes_join(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
}
static inline zmm _mm512_cvtph_ps(__m256i a)
{
    return lanes_join(_mm256_cvtph_ps(_mm256_castsi256_si128(a)),
                      _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1)));
}
#define _mm512_cvtps_ph(a, how)                                          \
    _mm256_set_m128i(_mm256_cvtps_ph(_mm512_extractf32x8_ps(a, 1), how), \
                     _mm256_cvtps_ph(_mm512_extractf32x8_ps(a, 0), how))
#define WIDEN(name, from, type)               \
    static inline zmm name(from a)            \
    {                                         \
        type narrow[sizeof a / sizeof(type)]; \
        memcpy(narrow, &a, sizeof narrow);    \
        EACH(r.i[i] = narrow[i]);             \
    }
WIDEN(_mm512_cvtepu16_epi32, __m256i, uint16_t)
WIDEN(_mm512_cvtepu8_epi32, __m128i, uint8_t)
WIDEN(_mm512_cvtepi8_epi32, __m128i, int8_t)
static inline zmm _mm512_permutexvar_ps(zmm index, zmm a) { EACH(r.f[i] = a.f[index.u[i] & 15]); }
static inline __m256i _mm512_cvtepi32_epi16(zmm a)
{
    uint16_t words[16];
    for (int i = 0; i < 16; i++)
        words[i] = (uint16_t)a.u[i];
    return _mm256_loadu_si256((const __m256i *)(const void *)words);
}
static inline __m128i _mm512_cvtepi32_epi8(zmm a)
{
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)a.u[i];
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* ---- whole numbers --------------------------------------------------------------------------- */

/* Not inline where templates unroll: compiling so many copies takes minutes. */
#define CALLED static __attribute__((noinline))

static inline zmm _mm512_set1_epi16(int x) { SHORTS(r.w[i] = (int16_t)x); }
static inline zmm _mm512_add_epi16(zmm a, zmm b) { SHORTS(r.w[i] = (int16_t)(a.w[i] + b.w[i])); }
static inline zmm _mm512_slli_epi16(zmm a, unsigned n)
{
    SHORTS(r.w[i] = (int16_t)((uint16_t)a.w[i] << n));
}
CALLED zmm _mm512_ternarylogic_epi32(zmm a, zmm b, zmm c, int table)
{
    zmm r = _mm512_setzero_ps();
    for (int i = 0; i < 16; i++)
        for (int bit = 0; bit < 32; bit++) {
            unsigned row =
                (a.u[i] >> bit & 1) << 2 | (b.u[i] >> bit & 1) << 1 | (c.u[i] >> bit & 1);
            r.u[i] |= ((unsigned)table >> row & 1) << bit;
        }
    return r;
}
static inline __m256i _mm512_extracti64x4_epi64(zmm a, int half)
{
    return _mm256_castps_si256(_mm512_extractf32x8_ps(a, half));
}
static inline zmm _mm512_inserti64x4(zmm a, __m256i b, int half)
{
    _mm256_storeu_ps(a.f + 8 * half, _mm256_castsi256_ps(b));
    return a;
}
static inline zmm _mm512_srlv_epi64(zmm a, zmm n)
{
    PAIRS(r.q[i] = n.q[i] < 64 ? a.q[i] >> n.q[i] : 0);
}
static inline zmm _mm512_xor_si512(zmm a, zmm b) { EACH(r.u[i] = a.u[i] ^ b.u[i]); }
CALLED zmm _mm512_cvtepi8_epi16(__m256i a)
{
    int8_t bytes[32];
    memcpy(bytes, &a, sizeof bytes);
    SHORTS(r.w[i] = bytes[i]);
}
#include "products.h"

/* ---- the same under other names -------------------------------------------------------------- */

#define _mm512_castps_si512(a) (a)
#define _mm512_castsi512_ps(a) (a)
#define _mm512_castps_pd(a) (a)
#define _mm512_castpd_ps(a) (a)
#define _mm512_castps512_ps256(a) _mm512_extractf32x8_ps(a, 0)
#define _mm512_castsi256_si512(a) _mm512_broadcast_i64x4(a) /* the upper half may be anything */
#define _mm512_castsi512_si256(a) _mm512_extracti64x4_epi64(a, 0)
#define _mm512_loadu_si512 _mm512_loadu_ps
#define _mm512_mask_mov_epi32 _mm512_mask_mov_ps
#define _mm512_setr_epi32(...) ((zmm){.i = {__VA_ARGS__}})
#define _mm512_setr_epi64(...) ((zmm){.q = {__VA_ARGS__}})
#define _mm512_setr_ps(...) ((zmm){.f = {__VA_ARGS__}})
#define _mm512_storeu_si512 _mm512_storeu_ps
#define _mm512_stream_si512 _mm512_stream_ps
#define _mm512_unpackhi_epi16(a, b) lanes_unpack(a, b, 1, 2)
#define _mm512_unpackhi_epi8(a, b) lanes_unpack(a, b, 1, 1)
#define _mm512_unpacklo_epi16(a, b) lanes_unpack(a, b, 0, 2)
#define _mm512_unpacklo_epi8(a, b) lanes_unpack(a, b, 0, 1)

/* these use registers that do not exist here, and are never called */
#define v_pin v_pin_zmm
#define v_fma_into v_fma_into_zmm
#define v_hide v_hide_zmm
#define v_dot_bytes_into v_dot_bytes_into_zmm
#define v_dot16_into v_dot16_into_zmm
#define v_store_rounded v_store_rounded_zmm
#define v_entries v_entries_zmm
#include "isa/vec/vec_avx512.h"
#undef v_pin
#undef v_fma_into
#undef v_hide
#undef v_dot_bytes_into
#undef v_dot16_into
#undef v_store_rounded
#undef v_entries
static inline void v_dot_bytes_into(vi *acc, vi plain, vi b) { lanes_dpbusd(acc, plain, b); }
static inline void v_dot16_into(vf *acc, vi a, vi b) { lanes_dpbf16(acc, a, b); }
static inline void v_store_rounded(uint16_t *p, vf a) { lanes_rounded(p, a); }
static inline vi v_entries(const vi *of, vi index) { return lanes_permi2b(index, of[0], of[1]); }
static inline void v_fma_into(vf *acc, vf a, vf b) { *acc = v_fma(a, b, *acc); }
static inline void v_hide(vi *a) { __asm__ volatile("" : "+m"(*a)); }
static inline void v_pin(vf a) { __asm__ volatile("" : : "m"(a)); }
#undef EACH /* isa/unit.c uses this name */
