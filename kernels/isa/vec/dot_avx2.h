/* Whole numbers: the operations that dot.tmpl.c is written with. */
#define DOT_I16 8 /* sums of a PV slice of dot16: heads x vectors, which 16-bit products make */

typedef __m256i vi;
static inline vi v_none(void) { return _mm256_setzero_si256(); }
static inline vi v_set_int(int32_t x) { return _mm256_set1_epi32(x); }
/* Its value is another one from here on, for all that the compiler knows. */
static inline void v_hide(vi *a) { __asm__ volatile("" : "+x"(*a)); }
static inline vi v_int_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vf v_floats(vi a) { return _mm256_cvtepi32_ps(a); }
static inline void v_store_i16(int16_t *p, vf a)
{
    __m256i i = _mm256_cvtps_epi32(a);
    __m128i wide = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    _mm_storeu_si128((__m128i *)(void *)p, wide);
}
static inline vi v_load_i16(const int16_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
/* 2 * VL codes as numbers of 16 bits */
static inline vi v_wide_codes(const uint8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* VL codes of two rows as numbers of 16 bits, side by side */
static inline vi v_code_pairs(const uint8_t *a, const uint8_t *b)
{
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a), y = _mm_loadl_epi64((const __m128i *)(const void *)b);
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
}
/* Eight bytes, again and again. */
static inline vi v_set_eight(const void *p) { return _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)p)); }
/* Each lane of *acc grows by two products of numbers of 16 bits. */
static inline void v_dot_i16_into(vi *acc, vi a, vi b) { *acc = _mm256_add_epi32(*acc, _mm256_madd_epi16(a, b)); }
