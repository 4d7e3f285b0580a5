/* dot: flash that multiplies in the numbers that a core multiplies fastest. Codes of i8, q8_0 and
 * q4_0 rows are multiplied as whole numbers. Rows of bf16 and of 8-bit floats are multiplied as
 * bf16, which holds all their values.
 *
 * ---- whole numbers ------------------------------------------------------------------------------
 *
 *   q, of one query row:
 *       each element times scale * log2(e) (and times K's scale of its channel, if any), then times
 *       L / the largest element, rounded to nearest even. L is 127: see kvb_levels(). In packed
 *       formats each block of 32 elements has its own largest element
 *   weights, of one query row in one tile:
 *       2^(score - max) times the scale of V (of the row; in packed formats of the block), then
 *       times M / the largest such product, rounded. M is 127. So in packed formats each block has
 *       its own weights
 *
 * Sums of whole numbers are exact: of a score (in packed formats, of a block of it), and of an
 * output over a tile. So in exact arithmetic a score is off by at most
 *   e = scale * max|q| * ||k||_1 / (2 L), in packed formats the sum of this over blocks,
 * its weight by a factor of at most exp(2 e) once they are normalised, and an output by at most
 *   (exp(2 e) - 1) * sum_t p_t |v_t|
 *   + sum over tiles of max_t |p_t s_t| / (2 M) * sum_t |code_t|,
 * where p are the normalised weights, s the scales of V, and e is that of the largest k. Scales of
 * i8 and q8_0 are never negative, as stores write them. A NaN of a weight or of a scale of V counts
 * as 0. The float32 errors of flash come on top. The largest weight of the tile itself counts, so a
 * tile of small weights is as exact as another one. A tile whose largest weight is below about
 * 2^-112 has no weight.
 *
 * ---- bf16 ---------------------------------------------------------------------------------------
 *
 *   q, an element:   times scale * log2(e) and K's scale, rounded to bf16, to nearest even: B = 8
 *                    significant bits, see kvb_levels()
 *   weights:         2^(score - max), rounded likewise. The sum of weights is of unrounded ones
 *
 * Each number is rounded by itself, so no result depends on other query rows of a group or other
 * tokens of a tile. Products are exact, and sums are float32. In exact arithmetic a score is off by
 * at most
 *   e = 2^-B * scale * sum_d |q_d k_d|,
 * its weight by a factor of at most exp(2 e), and an output by at most
 *   (exp(2 e) - 1) * sum_t p_t |v_t| + exp(2 e) * 2^-B * sum_t p_t |v_t|.
 * The float32 errors of flash come on top, twice: some instructions round sums to odd. Numbers
 * below 2^-126 may count as zero: an element of q or of a row, a weight, a product. An element of q
 * that rounds to 2^128 is infinite.
 *
 * A query and weights of two bf16 each would have the error of float32. On a Zen 4 that took .79 of
 * the time of flash for e4m3 and .93 for e5m2; it is not built.
 *
 * These rules are the same on all tiers. */
#ifndef KVB_DOT_H
#define KVB_DOT_H

#include "tier/tier.h"

/* The largest whole numbers: L of query elements, M of weights. Significant bits of a bf16: B. */
enum { DOT_QUERY = 127, DOT_WEIGHT = 127, DOT_BITS = 8 };

/* Sums of products with 8-bit codes must fit: of a score over all elements, of an output over all
 * tokens of a tile. */
#define DOT_FITS(most, count) \
    _Static_assert((int64_t)(most) * 128 * (count) <= INT32_MAX, "a sum fits 32 bits")
DOT_FITS(DOT_QUERY, DIM_MAX);
DOT_FITS(DOT_WEIGHT, TILE);

#pragma GCC visibility push(hidden)
/* scalar/dot_floats.c: the bf16 of each code of an 8-bit float without its sign: lower bytes, upper
 * bytes. The tables of other dtypes are zero. */
extern uint8_t kvb_code_bytes[DTYPES][2][128];
#pragma GCC visibility pop

#endif
