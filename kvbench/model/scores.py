"""What attention does to its scores beside the softmax: a sink of each query head, a cap, and
slopes by distance (ALiBi).

A score is scale * q . k. Then, in this order: softcap * tanh(score / softcap); + slope * (token -
the query's own token); the mask. A sink is one more score of the softmax, of no token: it takes its
share of the weights, and is neither scaled nor capped.
"""

import math
import random

NONE, HEADS = "none", "heads"
SINKS = (NONE, HEADS)  # whether query heads have sinks


def slopes(most: float, heads: int) -> tuple[float, ...]:
    """ALiBi's, of each query head, from a largest bias: 2^(-most * i / n), i from 1 on, for the n
    heads of the power of two below; the others lie between them.
    """
    whole = 1 << (heads.bit_length() - 1)
    powers = [-most * (head + 1) / whole for head in range(whole)]
    powers += [-most * (2 * head + 1) / (2 * whole) for head in range(heads - whole)]
    return tuple(2.0**power for power in powers)


def sinks(heads: int, tokens: int) -> tuple[float, ...]:
    """For points: about as large as all scores of so many tokens together, so that an answer
    without them is far off.
    """
    draw = random.Random(heads)
    return tuple(math.log(max(1, tokens)) + draw.gauss(0.0, 1.0) for _ in range(heads))
