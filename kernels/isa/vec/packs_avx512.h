/* Packed rows, with four packs of a row side by side, each in a 128-bit lane: the operations that
 * dot/fours.tmpl.c uses. */
#define V_FOUR_PACKS
/* Four packs, or three: then the fourth one gets scale zero, and the codes of the first. */
typedef struct vpacks {
    /* mask of the bytes to load from the line with the last scale: for q4_0 from the first pack on,
     * for q8_0 from the third */
    uint64_t line;
    int64_t fourth; /* offset in a row of the fourth pack */
} vpacks;
static inline vpacks v_packs_of(bool four, int64_t element)
{
    const int64_t bytes = element < 32 ? 3 * element : element;
    return (vpacks){four ? ~(uint64_t)0 : ((uint64_t)1 << bytes) - 1, four ? 3 * element : 0};
}
/* Load four numbers, each into all of its lane. */
static inline vi v_each_of(const void *p)
{
    const vi index = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_castps_si512(_mm512_permutexvar_ps(index, v_fours(p)));
}
/* Transpose 32-bit elements in each lane: to[j] gets element j of four vectors. */
static inline void v_turn(const vi *a, vi *to)
{
    vi low01 = _mm512_unpacklo_epi32(a[0], a[1]), high01 = _mm512_unpackhi_epi32(a[0], a[1]);
    vi low23 = _mm512_unpacklo_epi32(a[2], a[3]), high23 = _mm512_unpackhi_epi32(a[2], a[3]);
    to[0] = _mm512_unpacklo_epi64(low01, low23);
    to[1] = _mm512_unpackhi_epi64(low01, low23);
    to[2] = _mm512_unpacklo_epi64(high01, high23);
    to[3] = _mm512_unpackhi_epi64(high01, high23);
}
/* Load the codes of a row without the scales between them. They are in one line, except the end of
 * the last pack. */
static inline vi v_four_nibbles(const uint8_t *row, const vpacks *there)
{
    const vi words =
        _mm512_setr_epi32(2 << 16 | 1, 4 << 16 | 3, 6 << 16 | 5, 8 << 16 | 7, 11 << 16 | 10,
                          13 << 16 | 12, 15 << 16 | 14, 17 << 16 | 16, 20 << 16 | 19, 22 << 16 | 21,
                          24 << 16 | 23, 26 << 16 | 25, 0, 0, 0, 0);
    vi line = _mm512_maskz_loadu_epi8(there->line, row);
    __m128i last = _mm_loadu_si128((const __m128i *)(const void *)(row + there->fourth + 2));
    return _mm512_inserti32x4(_mm512_permutexvar_epi16(words, line), last, 3);
}
/* Load the first 16 codes of each pack, and the other 16. */
static inline void v_four_bytes(const uint8_t *row, const vpacks *there, vi *to)
{
    vi ab, cd;
    v_pack_bytes(row, row + 34, &ab);
    v_pack_bytes(row + 68, row + there->fourth, &cd);
    to[0] = _mm512_shuffle_i32x4(ab, cd, 0x88);
    to[1] = _mm512_shuffle_i32x4(ab, cd, 0xdd);
}
/* Load the scales of four packs of four rows, [packs][rows], as f16. */
static inline __m256i v_scales_q4_0(const uint8_t *const *rows, const vpacks *there)
{
    const vi even = _mm512_setr_epi32(32 << 16, 0, 41 << 16 | 9, 0, 50 << 16 | 18, 0, 59 << 16 | 27,
                                      0, 0, 0, 0, 0, 0, 0, 0, 0);
    const vi odd = _mm512_setr_epi32(0, 32 << 16, 0, 41 << 16 | 9, 0, 50 << 16 | 18, 0,
                                     59 << 16 | 27, 0, 0, 0, 0, 0, 0, 0, 0);
    vi line[4];
    for (int i = 0; i < 4; i++)
        line[i] = _mm512_maskz_loadu_epi8(there->line, rows[i]);
    vi low = _mm512_permutex2var_epi16(line[0], even, line[1]);
    vi high = _mm512_permutex2var_epi16(line[2], odd, line[3]);
    return _mm256_blend_epi32(_mm512_castsi512_si256(low), _mm512_castsi512_si256(high), 0xaa);
}
static inline __m128i v_scales_of_two(const vi *line)
{
    const vi even =
        _mm512_setr_epi32(32 << 16, 0, 49 << 16 | 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const vi odd =
        _mm512_setr_epi32(0, 32 << 16, 0, 49 << 16 | 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __m256i low = _mm512_castsi512_si256(_mm512_permutex2var_epi16(line[0], even, line[1]));
    __m256i high = _mm512_castsi512_si256(_mm512_permutex2var_epi16(line[2], odd, line[3]));
    return _mm256_castsi256_si128(_mm256_blend_epi32(low, high, 0xaa));
}
static inline __m256i v_scales_q8_0(const uint8_t *const *rows, const vpacks *there)
{
    vi first[4], third[4];
    for (int i = 0; i < 4; i++) {
        first[i] = _mm512_loadu_si512(rows[i]);
        third[i] = _mm512_maskz_loadu_epi8(there->line, rows[i] + 68);
    }
    return _mm256_set_m128i(v_scales_of_two(third), v_scales_of_two(first));
}
typedef __m256i vhalves;
static inline void v_store_scales(uint16_t *p, vhalves a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}
static inline void v_store_halves(float *low, float *high, vf a)
{
    _mm256_storeu_ps(low, _mm512_castps512_ps256(a));
    _mm256_storeu_ps(high, _mm512_extractf32x8_ps(a, 1));
}
static inline vf v_halves(vhalves a) { return _mm512_cvtph_ps(a); }
/* Load unsigned codes of four rows, four neighbours of each row side by side: to[8]. */
static inline void v_cells_q4_0(const uint8_t *const *rows, const vpacks *there, vi *to)
{
    vi codes[4];
    for (int i = 0; i < 4; i++)
        codes[i] = v_four_nibbles(rows[i], there);
    v_turn(codes, codes);
    for (int i = 0; i < 4; i++) {
        vi own[2];
        v_nibbles_of(codes[i], own);
        to[i] = own[0], to[4 + i] = own[1];
    }
}
static inline void v_cells_q8_0(const uint8_t *const *rows, const vpacks *there, vi *to)
{
    vi both[2], low[4], high[4];
    for (int i = 0; i < 4; i++) {
        v_four_bytes(rows[i], there, both);
        low[i] = v_biased(both[0]), high[i] = v_biased(both[1]);
    }
    v_turn(low, to);
    v_turn(high, to + 4);
}
/* Load codes of four rows, the four of an element side by side: to[4], for one of two parts of a
 * pack. Element i of a lane of to[j] is element 4 j' + i of the pack, with j' = V_QUAD(part, j). */
#define V_QUAD_q4_0(part, j) ((part) * 2 + (j) / 2 + (j) % 2 * 4)
#define V_QUAD_q8_0(part, j) ((part) * 4 + (j))
static inline void v_quads_q4_0(const uint8_t *const *rows, const vpacks *there, int part, vi *to)
{
    vi r[4];
    for (int i = 0; i < 4; i++)
        r[i] = v_four_nibbles(rows[i], there);
    vi ab = part ? _mm512_unpackhi_epi8(r[0], r[1]) : _mm512_unpacklo_epi8(r[0], r[1]);
    vi cd = part ? _mm512_unpackhi_epi8(r[2], r[3]) : _mm512_unpacklo_epi8(r[2], r[3]);
    v_nibbles_of(_mm512_unpacklo_epi16(ab, cd), to);
    v_nibbles_of(_mm512_unpackhi_epi16(ab, cd), to + 2);
}
static inline void v_quads_q8_0(const uint8_t *const *rows, const vpacks *there, int part, vi *to)
{
    vi r[4];
    for (int i = 0; i < 4; i++) {
        vi both[2];
        v_four_bytes(rows[i], there, both);
        r[i] = both[part];
    }
    v_quads(r, to);
}
/* Move element i of lane j to element j of lane i. */
static inline vi v_turned_lanes(vi a)
{
    const vi from = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_castps_si512(_mm512_permutexvar_ps(from, _mm512_castsi512_ps(a)));
}
/* Return the largest element of each lane, or the sum, in all of the lane. */
static inline vf v_lanes_max(vf a)
{
    a = _mm512_max_ps(a, _mm512_shuffle_ps(a, a, 0x4e));
    return _mm512_max_ps(a, _mm512_shuffle_ps(a, a, 0xb1));
}
static inline vi v_lanes_sum(vi a)
{
    a = v_int_add(a, _mm512_shuffle_epi32(a, 0x4e));
    return v_int_add(a, _mm512_shuffle_epi32(a, 0xb1));
}
/* Return the sums of the lanes of four vectors, one after another. */
static inline vf v_sums_of_lanes(const vf *a)
{
    return v_sums_lanes(v_sums_lanes(a[0], a[1], false), v_sums_lanes(a[2], a[3], false), false);
}
