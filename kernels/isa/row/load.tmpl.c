/* Loads of rows of DTYPE, for any dtype and tier. `load` and `codes` load a vector from element
 * `in` of a pack on, and never reach into the next pack. `values` loads one from any element on.
 *
 *   PACK 1     | e0 | e1 | e2 | ...                     an element is ELEMENT bytes
 *   PACK 32    | scale | c0 ... c31 | scale | c32 ...   a pack is ELEMENT bytes: an f16,
 *                                                       then codes; e = scale * c
 *
 * Vectors of a format with a FOLD are FOLD times too small: sums are multiplied by FOLD at their
 * end, which is exact. */

INLINE vf CAT(unfold_, DTYPE)(vf x) { return FOLD == 1.0f ? x : v_mul(x, v_set1(FOLD)); }
INLINE vf CAT(fold_, DTYPE)(vf x) { return FOLD == 1.0f ? x : v_mul(x, v_set1(1.0f / FOLD)); }

#if PACK == 1
INLINE vf LOAD(const uint8_t *row, int in) { return CAT(v_load_, DTYPE)(row + OFFSET(in)); }
INLINE vf CODES(const uint8_t *row, int in) { return LOAD(row, in); }
INLINE vf VALUES(const uint8_t *row, int at) { return CAT(unfold_, DTYPE)(LOAD(row, at)); }
#else
INLINE vf CODES(const uint8_t *row, int in)
{
    return CAT(v_load_, DTYPE)(row + OFFSET(in), in % PACK);
}
INLINE vf LOAD(const uint8_t *row, int in)
{
    return v_mul(CODES(row, in), v_half(row + OFFSET(in)));
}
INLINE vf VALUES(const uint8_t *row, int at) { return LOAD(row + OFFSET(at), at % PACK); }
#endif

/* Load `vecs` vectors; if they are PAIRED, two at once. */
INLINE void CAT(load_row_, DTYPE)(const uint8_t *row, const int in, const int vecs, vf *x)
{
    int i = 0;
#if PAIRED
    UNROLL_FOR (; i + 1 < vecs; i += 2)
        CAT(v_pair_, DTYPE)(row + OFFSET(in + i * VL), x + i);
#endif
    UNROLL_FOR (; i < vecs; i++)
        x[i] = LOAD(row, in + i * VL);
}

#include "isa/row/deal.tmpl.c"
