/* Products of bf16, two to a lane: the operations that dot/floats*.tmpl.c are written with.
 * By hand, as those of dot_avx512.h: they need AVX512_BF16, and of 8-bit floats AVX512_VBMI. */
#define V_DOT_FLOATS

/* Each lane of *acc grows by two products. Subnormals count as zero. */
static inline void v_dot16_into(vf *acc, vi a, vi b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(*acc) : "v"(a), "v"(b));
}
/* VL floats, rounded to bf16 */
static inline void v_store_rounded(uint16_t *p, vf a)
{
    __m256i words;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(words) : "v"(a));
    _mm256_storeu_si256((__m256i *)(void *)p, words);
}

/* Bytes, or words, of a and of b in turn: of the lower half of each 16 bytes, or of the `upper`. */
static inline vi v_zip_bytes(vi a, vi b, const bool upper)
{
    return upper ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
}
static inline vi v_zip_words(vi a, vi b, const bool upper)
{
    return upper ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
}
/* Words of two vectors as v_zip_bytes leaves them; and the sums of words that v_zip_words took in
 * turn, back in order. */
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
/* Where the word of element d is then, of those of all pieces of a row; from a word to the one of
 * the element eight further. d is a multiple of 16. */
enum { ZIPPED_EIGHT = 32 };
static inline int64_t v_zipped_at(int64_t d) { return d / 64 * 64 + d % 64 / 2; }
/* The sums of two neighbours each, of words that v_zip_bytes took in turn. */
static inline vf v_neighbours(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}
/* The first n bytes, n in [0, VB); all bits that b has */
static inline vi v_keep_bytes(vi a, int n) { return _mm512_maskz_mov_epi8((1ull << n) - 1, a); }
static inline vi v_int_and(vi a, vi b) { return _mm512_and_si512(a, b); }

/* The bf16 of each code but for its sign: lower bytes of all, and upper ones. */
typedef struct vcodes {
    vi lower[2], upper[2];
} vcodes;
static inline vcodes v_load_codes(const uint8_t (*bytes)[128])
{
    return (vcodes){{_mm512_loadu_si512(bytes[0]), _mm512_loadu_si512(bytes[0] + 64)},
                    {_mm512_loadu_si512(bytes[1]), _mm512_loadu_si512(bytes[1] + 64)}};
}
/* The entry of each byte but for its highest bit. */
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

/* 32-bit elements of LANES vectors: those at place j of all of them, in a[j]. */
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
/* The first half of the bytes to the lower halves of all 16 bytes, the last to the upper ones: what
 * v_zip_bytes takes in turn then follows each other. */
static inline vi v_apart(vi a)
{
    const vi from = _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    return _mm512_castps_si512(_mm512_permutexvar_ps(from, _mm512_castsi512_ps(a)));
}
/* For v_entries() of a vector of lower bytes and one of upper ones, both of four in each lane: the
 * words of the first two, or of the `others`. */
static inline vi v_words_of_lanes(const bool others)
{
    const vi first =
        _mm512_setr_epi32(0x41014000, 0x45054404, 0x49094808, 0x4d0d4c0c, 0x51115010, 0x55155414,
                          0x59195818, 0x5d1d5c1c, 0x61216020, 0x65256424, 0x69296828, 0x6d2d6c2c,
                          0x71317030, 0x75357434, 0x79397838, 0x7d3d7c3c);
    return others ? _mm512_add_epi32(first, _mm512_set1_epi32(0x02020202)) : first;
}
