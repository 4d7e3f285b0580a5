/* Rows turned in registers: what dot/turned.tmpl.c and floats/floats_turned.tmpl.c are written
 * with. */
#define V_TURNED

/* 32-bit elements of LANES vectors: those at place j of all of them, in a[j]. */
static inline void v_turn_square(vi *a)
{
    vi lanes[16];
    for (int i = 0; i < 16; i += 4)
        v_turn(a + i, lanes + i);
    for (int j = 0; j < 4; j++) {
        vf four[4];
        for (int i = 0; i < 4; i++)
            four[i] = _mm512_castsi512_ps(lanes[4 * i + j]);
        v_unquad(four);
        for (int i = 0; i < 4; i++)
            a[4 * i + j] = _mm512_castps_si512(four[i]);
    }
}
/* The first half of the bytes to the lower halves of all 16 bytes, the last to the upper ones: what
 * v_zip_bytes takes in turn then follows each other. */
static inline vi v_apart(vi a)
{
    const vi from = _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    return _mm512_castps_si512(_mm512_permutexvar_ps(from, _mm512_castsi512_ps(a)));
}
/* Of four bytes in each lane, lower ones and upper ones, the words: of the first two, and of the
 * others. */
static inline void v_zip_neighbours(vi lower, vi upper, vi *to)
{
    const vi four = _mm512_set1_epi32(0x04040404);
    const vi both[2] = {lower, upper};
    const vi lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vi first = _mm512_add_epi32(_mm512_set1_epi32(0x41014000), _mm512_mullo_epi32(four, lane));
    to[0] = v_entries(both, first);
    to[1] = v_entries(both, _mm512_add_epi32(first, _mm512_set1_epi32(0x02020202)));
}
