/* dot: flash that multiplies in what a core multiplies fastest: codes of i8, q8_0 and q4_0 rows as
 * they are, by whole numbers; rows of bf16 and of 8-bit floats, which all are bf16, by bf16.
 *
 * ---- whole numbers ------------------------------------------------------------------------------
 *
 *   q, a head's:     times scale * log2(e), where K is by channel first times its scales, then by
 *                    L / its largest, rounded to nearest even: L is 127, as kvb_levels() says. Of
 *                    a packed format every block of 32 elements has a largest of its own
 *   weights, a tile's of a head:
 *                    2^(score - max) times the scale of V, the row's or of a packed format the
 *                    block's, then by M / the largest of them, rounded: M is 127. So a block has
 *                    weights of its own
 *
 * Sums of whole numbers are exact: a score's, of packed formats a block's of it, and an output's
 * of a tile. So in exact arithmetic a score is off by at most
 *   e = scale * max|q| * ||k||_1 / (2 L), of packed formats the sum of that over blocks,
 * its weight by a factor of at most exp(2 e) once they are normalised, and an output by at most
 *   (exp(2 e) - 1) * sum_t p_t |v_t|
 *   + sum over tiles of max_t |p_t s_t| / (2 M) * sum_t |code_t|,
 * p the normalised weights, s the scales of V; e of the largest k. Scales of i8 and q8_0 are
 * never negative, as stores write them; a NaN of a weight or a scale of V counts as nothing. To
 * that comes what float32 costs flash. The tile's own largest is what counts: a tile of small
 * weights loses no more of itself than another. A tile whose largest is below about 2^-112
 * weighs nothing.
 *
 * ---- bf16 ---------------------------------------------------------------------------------------
 *
 *   q, an element:   times scale * log2(e) and K's scale, rounded to bf16, to nearest even: B = 8
 *                    significant bits, as kvb_levels() says
 *   weights:         2^(score - max) rounded likewise. The sum of weights is of those that were not
 *
 * Each is rounded by itself, so no result depends on what else is in a group or a tile. Products
 * are exact, and sums float32. In exact arithmetic a score is off by at most
 *   e = 2^-B * scale * sum_d |q_d k_d|,
 * its weight by a factor of at most exp(2 e), and an output by at most
 *   (exp(2 e) - 1) * sum_t p_t |v_t| + exp(2 e) * 2^-B * sum_t p_t |v_t|.
 * To that comes what float32 costs flash, twice: some instructions round sums to odd. What is below
 * 2^-126 may count as zero: an element of q or of a row, a weight, a product. An element of q that
 * rounds to 2^128 is infinite.
 *
 * A query and weights of two bf16 each would have the error of float32. On a Zen 4 that took .79 of
 * the time of flash for e4m3 and .93 for e5m2; it is not built.
 *
 * These rules are the same on all tiers. */
#ifndef KVB_DOT_H
#define KVB_DOT_H

#include "tier/tier.h"

/* Largest whole numbers: of a query's elements, and of a tile's weights. Significant bits of a
 * bf16. */
enum { DOT_QUERY = 127, DOT_WEIGHT = 127, DOT_BITS = 8 };

/* Sums of products with codes of 8 bits: a score's, of all elements, and a tile's, of all tokens.
 */
#define DOT_FITS(most, count) \
    _Static_assert((int64_t)(most) * 128 * (count) <= INT32_MAX, "a sum fits 32 bits")
DOT_FITS(DOT_QUERY, DIM_MAX);
DOT_FITS(DOT_WEIGHT, TILE);

#pragma GCC visibility push(hidden)
/* scalar/dot_floats.c: the bf16 of each code of an 8-bit float but for its sign, lower byte and
 * upper byte. Those of other dtypes are zero. */
extern uint8_t kvb_code_bytes[DTYPES][2][128];
#pragma GCC visibility pop

#endif
