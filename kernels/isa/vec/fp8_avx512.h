/* 8-bit floats: the operations that isa/row/float8.tmpl.c uses. Part of vec_avx512.h. */
/* The sign fills all bits above the exponent. Set the bit `bit` to the carry that adding `step`
 * gives. */
static inline __m256i v_carried(__m256i half, int step, int bit)
{
    __m256i sum = _mm256_add_epi16(half, _mm256_set1_epi16((int16_t)step));
    return _mm256_xor_si256(half, _mm256_and_si256(sum, _mm256_set1_epi16((int16_t)bit)));
}
static inline __m512i v_carried_wide(__m512i half, int step, int bit)
{
    enum { A_XOR_B_AND_C = 0x78 };
    __m512i sum = _mm512_add_epi16(half, _mm512_set1_epi16((int16_t)step));
    return _mm512_ternarylogic_epi32(half, sum, _mm512_set1_epi16((int16_t)bit), A_XOR_B_AND_C);
}
INLINE vf v_load_float8(const uint8_t *p, const int exponent, const int overflow)
{
    __m256i codes = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    __m256i half = _mm256_slli_epi16(codes, 3 + exponent);
    half = exponent < 5 ? v_carried(half, overflow, 1 << (10 + exponent)) : half;
    return _mm512_cvtph_ps(exponent < 4 ? v_carried(half, 1 << 13, 1 << 14) : half);
}
/* Load two vectors at once. */
INLINE void v_pair_float8(const uint8_t *p, const int exponent, const int overflow, vf *to)
{
    __m512i codes = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
    __m512i half = _mm512_slli_epi16(codes, (unsigned)(3 + exponent));
    half = exponent < 5 ? v_carried_wide(half, overflow, 1 << (10 + exponent)) : half;
    half = exponent < 4 ? v_carried_wide(half, 1 << 13, 1 << 14) : half;
    to[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
    to[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
}
/* Round to a format with `steps` values from one power of two to the next. Below `least` values are
 * as far apart as at `least`. The result is at most `most`. Adding 2^23 times the distance drops
 * all smaller bits. A NaN becomes all ones. */
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
/* Store the codes of values whose f16 has no bits below the code. */
static inline void v_store_float8(uint8_t *p, vf a, int exponent)
{
    __m256i half = _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i size = _mm256_and_si256(_mm256_srli_epi16(half, 3 + exponent), _mm256_set1_epi16(0x7f));
    __m256i sign = _mm256_and_si256(_mm256_srli_epi16(half, 8), _mm256_set1_epi16(0x80));
    __m256i code = _mm256_or_si256(size, sign);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(code, code), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(packed));
}
