/* Rows turned in registers: what dot/turned.tmpl.c and floats/floats_turned.tmpl.c are written
 * with. */
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
