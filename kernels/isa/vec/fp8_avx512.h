/* Stores of floats of 8 bits. Part of vec_avx512.h. */
/* Rounded to a format with values every 1 / steps of a power of two, of `least` for all below it;
 * at most `most`. Adding 2^23 times as much leaves no smaller bits. A NaN becomes all ones. */
static inline vf v_round_within(vf a, float steps, float least, float most)
{
    vf size = v_min(v_abs(a), v_set1(most));
    __m512i exponent = _mm512_and_si512(_mm512_castps_si512(size), _mm512_set1_epi32(0x7f800000));
    vf power = v_max(_mm512_castsi512_ps(exponent), v_set1(least));
    vf far = v_mul(power, v_set1(0x1p23f / steps)), near = v_sub(v_add(size, far), far);
    __m512i bits =
        _mm512_mask_mov_epi32(_mm512_castps_si512(near), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q),
                              _mm512_set1_epi32(0x7fffffff));
    __m512i sign = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN));
    return _mm512_castsi512_ps(_mm512_or_si512(bits, sign));
}
static inline void v_store_low_bytes(uint8_t *p, __m256i wide)
{
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(wide, wide), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(packed));
}
/* Exact as f16 of 2^-8 the value, which has nothing below the code. */
static inline void v_store_e4m3(uint8_t *p, vf a)
{
    vf near = v_mul(v_round_within(a, 8, 0x1p-6f, 448.0f), v_set1(0x1p-8f));
    __m256i half = _mm512_cvtps_ph(near, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i size = _mm256_and_si256(_mm256_srli_epi16(half, 7), _mm256_set1_epi16(0x7f));
    v_store_low_bytes(p, _mm256_or_si256(size, _mm256_and_si256(_mm256_srli_epi16(half, 8),
                                                                _mm256_set1_epi16(0x80))));
}
static inline void v_store_e5m2(uint8_t *p, vf a)
{
    vf near = v_round_within(a, 4, 0x1p-14f, 57344.0f);
    __m256i half = _mm512_cvtps_ph(near, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v_store_low_bytes(p, _mm256_srli_epi16(half, 8));
}
