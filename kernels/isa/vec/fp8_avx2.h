/* 8-bit floats: the operations that isa/row/float8.tmpl.c uses. Part of vec_avx2.h. */
/* The sign fills all bits above the exponent. Set the bit `bit` to the carry that adding `step`
 * gives. */
static inline __m128i v_carried(__m128i half, int step, int bit)
{
    __m128i sum = _mm_add_epi16(half, _mm_set1_epi16((int16_t)step));
    return _mm_xor_si128(half, _mm_and_si128(sum, _mm_set1_epi16((int16_t)bit)));
}
static inline __m256i v_carried_wide(__m256i half, int step, int bit)
{
    __m256i sum = _mm256_add_epi16(half, _mm256_set1_epi16((int16_t)step));
    return _mm256_xor_si256(half, _mm256_and_si256(sum, _mm256_set1_epi16((int16_t)bit)));
}
INLINE vf v_load_float8(const uint8_t *p, const int exponent, const int overflow)
{
    __m128i codes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    if (exponent == 5)
        return _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), codes));
    __m128i half = _mm_slli_epi16(_mm_cvtepi8_epi16(codes), 3 + exponent);
    half = v_carried(half, overflow, 1 << (10 + exponent));
    return _mm256_cvtph_ps(exponent < 4 ? v_carried(half, 1 << 13, 1 << 14) : half);
}
/* Load two vectors at once. */
INLINE void v_pair_float8(const uint8_t *p, const int exponent, const int overflow, vf *to)
{
    __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)p);
    if (exponent == 5) {
        to[0] = _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), codes));
        to[1] = _mm256_cvtph_ps(_mm_unpackhi_epi8(_mm_setzero_si128(), codes));
        return;
    }
    __m256i half = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 3 + exponent);
    half = v_carried_wide(half, overflow, 1 << (10 + exponent));
    half = exponent < 4 ? v_carried_wide(half, 1 << 13, 1 << 14) : half;
    to[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    to[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
}
/* Round to a format with `steps` values from one power of two to the next. Below `least` values are
 * as far apart as at `least`. The result is at most `most`. Adding 2^23 times the distance drops
 * all smaller bits. A NaN becomes all ones. */
static inline vf v_round_within(vf a, float steps, float least, float most)
{
    vf nan = v_abs(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)), size = v_min(v_abs(a), v_set1(most));
    vf power = v_max(_mm256_and_ps(size, v_set1(__builtin_inff())), v_set1(least));
    vf far = v_mul(power, v_set1(0x1p23f / steps)), sign = _mm256_and_ps(a, v_set1(-0.0f));
    return _mm256_or_ps(_mm256_or_ps(v_sub(v_add(size, far), far), nan), sign);
}
/* Store the codes of values whose f16 has no bits below the code. */
static inline void v_store_float8(uint8_t *p, vf a, int exponent)
{
    __m128i half = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m128i size = _mm_and_si128(_mm_srli_epi16(half, 3 + exponent), _mm_set1_epi16(0x7f));
    __m128i code = _mm_or_si128(size, _mm_and_si128(_mm_srli_epi16(half, 8), _mm_set1_epi16(0x80)));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(code, code));
}
