/* dot: flash that multiplies the codes of i8, q8_0 and q4_0 rows as they are, by whole numbers.
 *
 *   q, a head's      times scale * log2(e), then by L / its largest, rounded to nearest even: L is 127, as kvb_levels()
 *                    says. Of a packed format every block of 32 elements has a largest of its own
 *   weights, a tile's of a head: of i8 alone, 2^(score - max) times the row's scale of V, then by M / the largest of
 *                    them, rounded: M is 255. Those of packed formats stay floats, and so do V's elements
 *
 * Sums of whole numbers are exact: of i8 a score's and an output's of a tile, of packed formats a block's, which are
 * floats from there on, times both scales. So in exact arithmetic a score is off by at most
 *   e = scale * max|q| * ||k||_1 / (2 L), of packed formats the sum of that over blocks,
 * its weight by a factor of at most exp(2 e) once they are normalised, and an output by at most
 *   (exp(2 e) - 1) * sum_t p_t |v_t|  +  of i8, sum over tiles of max_t(p_t s_t) / (2 M) * sum_t |code_t|,
 * p the normalised weights, s the scales of V, of which none is negative; e of the largest k. To that comes what float32
 * costs flash. The tile's own largest is what counts: a tile of small weights loses no more of itself than another. A
 * tile whose largest is below about 2^-112 weighs nothing. The rules are those of all tiers; how numbers are
 * multiplied, as bytes or widened to 16 bits, is a tier's own. */
#ifndef KVB_DOT_H
#define KVB_DOT_H

#include "tier/tier.h"

/* Largest whole numbers: of a query's elements, and of a tile's weights. */
enum { DOT_QUERY = 127, DOT_WEIGHT = 255 };

/* Sums of products with codes of 8 bits: a score's, of all elements, and a tile's, of all tokens. */
#define DOT_FITS(most, count) _Static_assert((int64_t)(most) * 128 * (count) <= INT32_MAX, "a sum fits 32 bits")
DOT_FITS(DOT_QUERY, DIM_MAX);
DOT_FITS(DOT_WEIGHT, TILE);

#endif
