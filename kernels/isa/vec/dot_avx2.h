/* Whole numbers: the operations that dot.tmpl.c is written with. */
#define DOT_I16 8 /* dot of i8 by products of 16 bits: sums of a PV slice, heads x vectors */
#define DOT_K_BIAS 0
#define V_DOT_I16

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
/* VB bytes; VL whole numbers */
static inline vi v_load_bytes(const int8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline vi v_load_ints(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
/* Each lane of *acc grows by four products of bytes of which no two reach 2^15: those of `plain` codes have no sign,
 * and others leave theirs to q, so that even -128 fits. */
static inline void v_dot_codes_into(vi *acc, vi codes, vi q, bool plain)
{
    vi pairs = plain ? _mm256_maddubs_epi16(codes, q)
                     : _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes));
    *acc = _mm256_add_epi32(*acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
/* The codes of a pack, those of q4_0 with 8 added; and its scale. A vector has room for no second one. */
static inline void v_codes_q8_0(const uint8_t *pack, const uint8_t *then, vi *to)
{
    (void)then;
    to[0] = _mm256_loadu_si256((const __m256i *)(const void *)(pack + 2));
}
static inline void v_codes_q4_0(const uint8_t *pack, const uint8_t *then, vi *to)
{
    (void)then;
    __m128i both = _mm_loadu_si128((const __m128i *)(const void *)(pack + 2));
    to[0] = _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(15));
}
static inline vf v_pack_scales(const uint8_t *pack, const uint8_t *then) { return (void)then, v_half(pack); }
