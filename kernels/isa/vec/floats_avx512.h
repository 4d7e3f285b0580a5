/* Products of bf16, two in a lane: the operations that the templates of isa/floats/ use. In
 * assembly, as in dot_avx512.h. They need AVX512_BF16, and for 8-bit floats AVX512_VBMI. */
#define V_DOT_FLOATS

/* Add two products to each lane of *acc. Subnormals count as zero. */
static inline void v_dot16_into(vf *acc, vi a, vi b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(*acc) : "v"(a), "v"(b));
}
/* Store VL floats, rounded to bf16. */
static inline void v_store_rounded(uint16_t *p, vf a)
{
    __m256i words;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(words) : "v"(a));
    _mm256_storeu_si256((__m256i *)(void *)p, words);
}

/* Interleave the bytes, or words, of a and b: in each 16 bytes those of the lower halves, or of the
 * upper halves. */
static inline vi v_zip_bytes(vi a, vi b, const bool upper)
{
    return upper ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
}
static inline vi v_zip_words(vi a, vi b, const bool upper)
{
    return upper ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
}
/* v_as_zipped: put the words of two vectors in the order of v_zip_bytes. Then the reverse, for sums
 * of words that v_zip_words interleaved. */
static inline void v_as_zipped(vi *two)
{
    vf a = _mm512_castsi512_ps(two[0]), b = _mm512_castsi512_ps(two[1]);
    two[0] = _mm512_castps_si512(_mm512_shuffle_f32x4(a, b, 0x88));
    two[1] = _mm512_castps_si512(_mm512_shuffle_f32x4(a, b, 0xdd));
}
static inline void v_unzip(vf *two)
{
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    vf first = _mm512_permutex2var_ps(two[0], low, two[1]);
    two[1] = _mm512_permutex2var_ps(two[0], high, two[1]);
    two[0] = first;
}
/* Then: the place of the word of element d (a multiple of 16) among the words of a row; and from a
 * word to that of the eighth element after it. */
enum { ZIPPED_EIGHT = 32 };
static inline int64_t v_zipped_at(int64_t d) { return d / 64 * 64 + d % 64 / 2; }
/* Return the sums of pairs of neighbours, for words that v_zip_bytes interleaved. */
static inline vf v_neighbours(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}
/* v_keep_bytes: keep the first n bytes, n in [0, VB), and zero the rest; then the bitwise AND. */
static inline vi v_keep_bytes(vi a, int n) { return _mm512_maskz_mov_epi8((1ull << n) - 1, a); }
static inline vi v_int_and(vi a, vi b) { return _mm512_and_si512(a, b); }

/* A table of the bf16 of each code without its sign: lower bytes, upper bytes. */
typedef struct vcodes {
    vi lower[2], upper[2];
} vcodes;
static inline vcodes v_load_codes(const uint8_t (*bytes)[128])
{
    return (vcodes){{_mm512_loadu_si512(bytes[0]), _mm512_loadu_si512(bytes[0] + 64)},
                    {_mm512_loadu_si512(bytes[1]), _mm512_loadu_si512(bytes[1] + 64)}};
}
/* Look up each byte without its highest bit. */
static inline vi v_entries(const vi *of, vi index)
{
    __asm__("vpermi2b %2, %1, %0" : "+v"(index) : "v"(of[0]), "v"(of[1]));
    return index;
}
#define v_lower_bytes(codes, x) v_entries((codes)->lower, x)
#define v_upper_bytes(codes, x) v_signed_as(v_entries((codes)->upper, x), x)
static inline vi v_signed_as(vi bytes, vi x)
{
    enum { A_OR_B_AND_C = 0xf8 };
    return _mm512_ternarylogic_epi32(bytes, x, _mm512_set1_epi32((int32_t)0x80808080),
                                     A_OR_B_AND_C);
}

/* ---- rows turned in registers: dot/turned.tmpl.c, floats/floats_turned.tmpl.c --------------- */

#define V_TURNED

/* Transpose 32-bit elements of LANES vectors: a[j] gets element j of all vectors. */
static inline void v_turn_square(vi *a)
{
    vi lanes[16];
    UNROLL_UP_TO(16) for (int i = 0; i < 16; i += 4) v_turn(a + i, lanes + i);
    UNROLL_UP_TO(16) for (int j = 0; j < 4; j++)
    {
        vf four[4];
        UNROLL_UP_TO(16)
        for (int i = 0; i < 4; i++)
            four[i] = _mm512_castsi512_ps(lanes[4 * i + j]);
        v_unquad(four);
        UNROLL_UP_TO(16) for (int i = 0; i < 4; i++) a[4 * i + j] = _mm512_castps_si512(four[i]);
    }
}
/* Move the first half of the bytes to the lower halves of all 16 bytes, the last half to the upper
 * ones. v_zip_bytes then gives them in order. */
static inline vi v_apart(vi a)
{
    const vi from = _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    return _mm512_castps_si512(_mm512_permutexvar_ps(from, _mm512_castsi512_ps(a)));
}
/* Return indices for v_entries() of a vector of lower bytes and one of upper bytes, with four bytes
 * in each lane: they give the words of the first two, or of the other two (`others`). */
static inline vi v_words_of_lanes(const bool others)
{
    const vi first =
        _mm512_setr_epi32(0x41014000, 0x45054404, 0x49094808, 0x4d0d4c0c, 0x51115010, 0x55155414,
                          0x59195818, 0x5d1d5c1c, 0x61216020, 0x65256424, 0x69296828, 0x6d2d6c2c,
                          0x71317030, 0x75357434, 0x79397838, 0x7d3d7c3c);
    return others ? _mm512_add_epi32(first, _mm512_set1_epi32(0x02020202)) : first;
}
