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
#include "decode/decode.h"

void kvb_dot8(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    kvb_flash(task, state, walk, ticks); /* the way of reading is the task's */
}

void kvb_dot16(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    kvb_flash(task, state, walk, ticks);
}
