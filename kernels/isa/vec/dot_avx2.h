/* Whole numbers: the operations that dot/dot.tmpl.c uses. */
#define DOT_BIAS 0

typedef __m256i vi;
static inline vi v_none(void) { return _mm256_setzero_si256(); }
static inline vi v_set_int(int32_t x) { return _mm256_set1_epi32(x); }
/* Make the compiler assume that the value changes here. */
static inline void v_hide(vi *a) { __asm__ volatile("" : "+x"(*a)); }
static inline vi v_int_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi v_int_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vf v_floats(vi a) { return _mm256_cvtepi32_ps(a); }
/* VB codes, or bytes, as they are; VL whole numbers */
#define v_biased(codes) (codes)
static inline vi v_codes(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline vi v_load_bytes(const int8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline vi v_load_ints(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline void v_store_ints(int32_t *p, vi a) { _mm256_storeu_si256((__m256i *)(void *)p, a); }
/* Add four products of bytes to each lane of *acc. The sum of two products must be below 2^15.
 * Weights are 0 to 127. In assembly, because compilers keep accumulators on the stack, and because
 * an assembler may know AVX-VNNI if the compiler does not. */
static inline void v_dot_weights_into(vi *acc, vi weights, vi codes)
{
#ifdef KVB_VNNI
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*acc) : "x"(weights), "x"(codes));
#else
    vi pairs;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
            : "+x"(*acc), "=&x"(pairs)
            : "x"(weights), "x"(codes), "x"(_mm256_set1_epi16(1)));
#endif
}
/* `plain` codes are 0 to 15. The sign of other codes is moved to `other`, so that -128 fits, too.
 */
static inline void v_dot_codes_into(vi *acc, vi codes, vi other, bool plain)
{
    v_dot_weights_into(acc, plain ? codes : _mm256_abs_epi8(codes),
                       plain ? other : _mm256_sign_epi8(other, codes));
}
/* Load the codes of a pack, bytes or nibbles; and its scale. A vector has no room for a second
 * pack. / */
static inline void v_pack_bytes(const uint8_t *pack, const uint8_t *then, vi *to)
{
    (void)then;
    to[0] = _mm256_loadu_si256((const __m256i *)(const void *)(pack + 2));
}
static inline void v_pack_nibbles(const uint8_t *pack, const uint8_t *then, vi *to)
{
    (void)then;
    __m128i both = _mm_loadu_si128((const __m128i *)(const void *)(pack + 2));
    to[0] = _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(15));
}
/* Unpack the nibbles of VB bytes: lower ones to to[0], upper ones to to[1]. */
static inline void v_nibbles(const uint8_t *p, vi *to)
{
    const vi lower = _mm256_set1_epi8(15);
    vi both = v_codes(p);
    v_hide(&both); /* else it is loaded twice */
    to[0] = _mm256_and_si256(both, lower);
    to[1] = _mm256_and_si256(_mm256_srli_epi16(both, 4), lower);
}
static inline vf v_pack_scales(const uint8_t *pack, const uint8_t *then)
{
    return (void)then, v_half(pack);
}
/* Interleave four rows: the four codes of an element side by side. 128-bit lane l of to[j] has the
 * elements from 16 l + 4 j on. v_unquad restores the order of elements. */
static inline void v_quads(const vi *rows, vi *to)
{
    vi ab = _mm256_unpacklo_epi8(rows[0], rows[1]), cd = _mm256_unpacklo_epi8(rows[2], rows[3]);
    to[0] = _mm256_unpacklo_epi16(ab, cd);
    to[1] = _mm256_unpackhi_epi16(ab, cd);
    ab = _mm256_unpackhi_epi8(rows[0], rows[1]), cd = _mm256_unpackhi_epi8(rows[2], rows[3]);
    to[2] = _mm256_unpacklo_epi16(ab, cd);
    to[3] = _mm256_unpackhi_epi16(ab, cd);
}
static inline void v_unquad(vf *a)
{
    vf low01 = _mm256_permute2f128_ps(a[0], a[1], 0x20),
       high01 = _mm256_permute2f128_ps(a[0], a[1], 0x31);
    vf low23 = _mm256_permute2f128_ps(a[2], a[3], 0x20),
       high23 = _mm256_permute2f128_ps(a[2], a[3], 0x31);
    a[0] = low01, a[1] = low23, a[2] = high01, a[3] = high23;
}
/* Round lanes to bytes: four of a[0], four of a[1], of a[2] and a[3], and so on. A NaN counts as 0.
 */
static inline vi v_whole(vf a) { return _mm256_cvtps_epi32(v_number(a)); }
static inline void v_store_quads(int8_t *to, const vf *a)
{
    const vi low = _mm256_packs_epi32(v_whole(a[0]), v_whole(a[1])),
             high = _mm256_packs_epi32(v_whole(a[2]), v_whole(a[3]));
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_packs_epi16(low, high));
}
/* Return the larger value of each lane; `most` if a is a NaN. */
static inline vf v_larger(vf a, vf most) { return _mm256_max_ps(a, most); }
/* Four weights in all lanes; a vector has no room for a second pack. */
#define v_weights(first, second, j) dot_four(first)

#ifndef KVB_VNNI
/* Add two products of a nibble and a byte to each word; and the sums of pairs of words. In
 * assembly, because compilers copy the words. */
#define V_NIBBLES
static inline void v_dot_nibbles_into(vi *words, vi nibbles, vi others)
{
    vi products;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
            : "+x"(*words), "=&x"(products)
            : "x"(nibbles), "x"(others));
}
static inline vi v_widen(vi words) { return _mm256_madd_epi16(words, _mm256_set1_epi16(1)); }
#endif
