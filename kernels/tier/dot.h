/* dot8, dot16: flash over i8 rows whose codes are multiplied as they are, by whole numbers.
 *
 *   q, a head's      times scale * log2(e), then by L / its largest, rounded to nearest even: L is 127, or 32639 (16319
 *                    for rows of more than 512), as kvb_levels() says
 *   weights, a tile's of a head: 2^(score - max) times the row's scale of V, then by M / the largest of them, rounded:
 *                    M is 255, or 32767
 *
 * Both sums are exact. So in exact arithmetic a score is off by at most
 *   e = scale * max|q| * ||k||_1 / (2 L), its weight by a factor of at most exp(2 e) once they are normalised,
 * and an output by at most
 *   (exp(2 e) - 1) * sum_t p_t |v_t|  +  sum over tiles of max_t(p_t s_t) / (2 M) * sum_t |code_t|,
 * p the normalised weights, s the scales of V, of which none is negative; e of the largest k. To that comes what float32
 * costs flash. The tile's own largest is what counts: a tile of small weights loses no more of itself than another. Of
 * rows of unit variance and 128 elements, a score of dot16 is off by about 3e-5, and an output by less than 1e-5 from a
 * hundred tokens on: what is lost has no sign in common. A tile whose largest is below about 2^-112 weighs nothing. */
#ifndef KVB_DOT_H
#define KVB_DOT_H

#include "tier/tier.h"

/* Largest whole numbers of the ways that multiply whole numbers: of a query's elements, and of a tile's weights. 32639 is
 * 127 * 256 + 127, the most that two signed bytes say. */
enum { DOT8_QUERY = 127, DOT8_WEIGHT = 255, DOT16_QUERY = 32639, DOT16_WEIGHT = 32767, DOT16_DIM = 512 };

/* Sums of products with codes of 8 bits: a score's, of all elements, and a tile's, of all tokens. Only dot8 takes rows
 * whole, in longer tiles. */
#define DOT_FITS(most, count) _Static_assert((int64_t)(most) * 128 * (count) <= INT32_MAX, "a sum fits 32 bits")
DOT_FITS(DOT8_QUERY, DIM_MAX);
DOT_FITS(DOT16_QUERY, DOT16_DIM);
DOT_FITS(DOT16_QUERY / 2, DIM_MAX);
DOT_FITS(DOT8_WEIGHT, TILE);
DOT_FITS(DOT16_WEIGHT, TILE_LISTED);

static inline int32_t dot_query(int32_t row_kernel, int64_t dim)
{
    return row_kernel == READ_DOT8 ? DOT8_QUERY : dim > DOT16_DIM ? DOT16_QUERY / 2 : DOT16_QUERY;
}
static inline int32_t dot_weight(int32_t row_kernel) { return row_kernel == READ_DOT8 ? DOT8_WEIGHT : DOT16_WEIGHT; }

#endif
