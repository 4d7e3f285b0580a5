/* Stores of floats of 8 bits. Part of vec_avx2.h. */
/* Rounded to a format with values every 1 / steps of a power of two, of `least` for all below it;
 * at most `most`. Adding 2^23 times as much leaves no smaller bits. A NaN becomes all ones. */
static inline vf v_round_within(vf a, float steps, float least, float most)
{
    vf nan = v_abs(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)), size = v_min(v_abs(a), v_set1(most));
    vf power = v_max(_mm256_and_ps(size, v_set1(__builtin_inff())), v_set1(least));
    vf far = v_mul(power, v_set1(0x1p23f / steps)), sign = _mm256_and_ps(a, v_set1(-0.0f));
    return _mm256_or_ps(_mm256_or_ps(v_sub(v_add(size, far), far), nan), sign);
}
/* Exact as f16 of 2^-8 the value, which has nothing below the code. */
static inline void v_store_e4m3(uint8_t *p, vf a)
{
    vf near = v_mul(v_round_within(a, 8, 0x1p-6f, 448.0f), v_set1(0x1p-8f));
    __m128i half = _mm256_cvtps_ph(near, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m128i size = _mm_and_si128(_mm_srli_epi16(half, 7), _mm_set1_epi16(0x7f));
    __m128i code = _mm_or_si128(size, _mm_and_si128(_mm_srli_epi16(half, 8), _mm_set1_epi16(0x80)));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(code, code));
}
static inline void v_store_e5m2(uint8_t *p, vf a)
{
    vf near = v_round_within(a, 4, 0x1p-14f, 57344.0f);
    __m128i half = _mm256_cvtps_ph(near, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m128i code = _mm_srli_epi16(half, 8);
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(code, code));
}
