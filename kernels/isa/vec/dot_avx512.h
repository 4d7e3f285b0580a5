/* Whole numbers: the operations that dot/dot.tmpl.c uses. */
#define DOT_BIAS 128 /* one of two bytes is unsigned: 128 is added to codes of K */

typedef __m512i vi;
static inline vi v_none(void) { return _mm512_set1_epi32(0); }
static inline vi v_set_int(int32_t x) { return _mm512_set1_epi32(x); }
/* Make the compiler assume that the value changes here. */
static inline void v_hide(vi *a) { __asm__ volatile("" : "+v"(*a)); }
static inline vi v_load_ints(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void v_store_ints(int32_t *p, vi a) { _mm512_storeu_si512(p, a); }
static inline vi v_int_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi v_int_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vf v_floats(vi a) { return _mm512_cvtepi32_ps(a); }
#define V_INT_SUMS
static inline vi v_int_sums(const vi *a)
{
    /* a copy: through a pointer of another type the vectors would be stored at every step of a loop
     */
    vf sums[VL];
    for (int i = 0; i < VL; i++)
        sums[i] = _mm512_castsi512_ps(a[i]);
    return _mm512_castps_si512(v_sums_of(sums, true));
}
/* Repeat eight bytes in all of a vector. */
static inline vi v_set_eight(const void *p)
{
    return _mm512_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)p));
}
/* v_biased: codes with 128 added. Loads of VB such codes, and of VB bytes unchanged. */
static inline vi v_biased(vi codes)
{
    return _mm512_xor_si512(codes, _mm512_set1_epi32((int32_t)0x80808080));
}
static inline vi v_codes(const uint8_t *p) { return v_biased(_mm512_loadu_si512(p)); }
static inline vi v_load_bytes(const int8_t *p) { return _mm512_loadu_si512(p); }
static inline void v_store_bytes(uint8_t *p, vi a) { _mm512_storeu_si512(p, a); }
/* Repeat the first VB / n bytes n times. */
#define V_SHARED
static inline vi v_repeated(const uint8_t *p, int n)
{
    return n == 2   ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(const void *)p))
           : n == 4 ? _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p))
                    : v_set_eight(p);
}
/* Add up each of the n parts of four vectors. Sums of the same part are side by side. With 8 parts,
 * even parts are in to[0], odd ones in to[1]; with 2 parts, each sum is there twice. */
static inline void v_shared_sums(const vi *a, int n, vi *to)
{
    vf x[4], sums;
    for (int i = 0; i < 4; i++)
        x[i] = _mm512_castsi512_ps(a[i]);
    if (n == 8) {
        vf low =
            v_added(_mm512_shuffle_ps(x[0], x[1], 0x88), _mm512_shuffle_ps(x[0], x[1], 0xdd), true);
        vf high =
            v_added(_mm512_shuffle_ps(x[2], x[3], 0x88), _mm512_shuffle_ps(x[2], x[3], 0xdd), true);
        to[0] = _mm512_castps_si512(_mm512_shuffle_ps(low, high, 0x88));
        to[1] = _mm512_castps_si512(_mm512_shuffle_ps(low, high, 0xdd));
        return;
    }
    sums = v_sums4(x, true);
    sums = n == 4 ? sums : v_added(sums, _mm512_shuffle_f32x4(sums, sums, 0xb1), true);
    to[0] = _mm512_castps_si512(sums);
}
/* Add four products of bytes to each lane of *acc; bytes of `plain` are unsigned. In assembly: so
 * this tier compiles without VNNI, and uses it in functions that run only if the CPU has it. And no
 * accumulator is copied. */
static inline void v_dot_bytes_into(vi *acc, vi plain, vi b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*acc) : "v"(plain), "v"(b));
}
#define v_dot_weights_into(acc, weights, codes) v_dot_bytes_into(acc, weights, codes)
#define v_dot_codes_into(acc, codes, other, plain) v_dot_bytes_into(acc, codes, other)
/* Load the codes of two packs, bytes or nibbles; and the scale of each, in all lanes of its pack.
 */
static inline void v_pack_bytes(const uint8_t *pack, const uint8_t *then, vi *to)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(pack + 2));
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(then + 2));
    to[0] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
static inline void v_pack_nibbles(const uint8_t *pack, const uint8_t *then, vi *to)
{
    const vi shifts = _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4);
    __m256i low =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(pack + 2)));
    __m256i high =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(then + 2)));
    vi both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    to[0] = _mm512_and_si512(_mm512_srlv_epi64(both, shifts), _mm512_set1_epi32(0x0f0f0f0f));
}
static inline vf v_pack_scales(const uint8_t *pack, const uint8_t *then)
{
    int16_t low, high;
    memcpy(&low, pack, sizeof low);
    memcpy(&high, then, sizeof high);
    return _mm512_cvtph_ps(_mm256_set_m128i(_mm_set1_epi16(high), _mm_set1_epi16(low)));
}
/* Unpack the nibbles of bytes: lower ones to to[0], upper ones to to[1]. */
static inline void v_nibbles_of(vi both, vi *to)
{
    const vi lower = _mm512_set1_epi32(0x0f0f0f0f);
    to[0] = _mm512_and_si512(both, lower);
    to[1] = _mm512_and_si512(_mm512_srli_epi32(both, 4), lower);
}
static inline void v_nibbles(const uint8_t *p, vi *to) { v_nibbles_of(_mm512_loadu_si512(p), to); }
/* Interleave four rows: the four codes of an element side by side. 128-bit lane l of to[j] has the
 * elements from 16 l + 4 j on. v_unquad restores the order of elements. */
static inline void v_quads(const vi *rows, vi *to)
{
    vi ab = _mm512_unpacklo_epi8(rows[0], rows[1]), cd = _mm512_unpacklo_epi8(rows[2], rows[3]);
    to[0] = _mm512_unpacklo_epi16(ab, cd);
    to[1] = _mm512_unpackhi_epi16(ab, cd);
    ab = _mm512_unpackhi_epi8(rows[0], rows[1]), cd = _mm512_unpackhi_epi8(rows[2], rows[3]);
    to[2] = _mm512_unpacklo_epi16(ab, cd);
    to[3] = _mm512_unpackhi_epi16(ab, cd);
}
static inline void v_unquad(vf *a)
{
    vf low01 = _mm512_shuffle_f32x4(a[0], a[1], 0x44),
       high01 = _mm512_shuffle_f32x4(a[0], a[1], 0xee);
    vf low23 = _mm512_shuffle_f32x4(a[2], a[3], 0x44),
       high23 = _mm512_shuffle_f32x4(a[2], a[3], 0xee);
    a[0] = _mm512_shuffle_f32x4(low01, low23, 0x88);
    a[1] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
    a[2] = _mm512_shuffle_f32x4(high01, high23, 0x88);
    a[3] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
}
/* Round lanes to bytes: four of a[0], four of a[1], of a[2] and a[3], and so on. A NaN counts as 0.
 */
static inline vi v_whole(vf a)
{
    return _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a);
}
static inline vi v_quads_of(const vf *a)
{
    const vi low = _mm512_packs_epi32(v_whole(a[0]), v_whole(a[1])),
             high = _mm512_packs_epi32(v_whole(a[2]), v_whole(a[3]));
    return _mm512_packs_epi16(low, high);
}
static inline void v_store_quads(int8_t *to, const vf *a)
{
    _mm512_storeu_si512(to, v_quads_of(a));
}
/* Return the larger value of each lane; `most` if a is a NaN. */
static inline vf v_larger(vf a, vf most) { return _mm512_max_ps(a, most); }
/* Return the weights for to[j] of v_quads: four in all lanes of the first pack, four in those of
 * the second. */
static inline vi v_weights(const int8_t *first, const int8_t *second, int j)
{
    int32_t low, high;
    (void)j;
    memcpy(&low, first, sizeof low);
    memcpy(&high, second, sizeof high);
    return first == second ? v_set_int(low) : _mm512_mask_set1_epi32(v_set_int(low), 0xff00, high);
}
