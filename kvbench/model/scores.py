"""What attention does to its scores beside the softmax: a sink for each query head, a cap, and
slopes by distance (ALiBi).

A score is scale * q . k. Three operations follow in this order: softcap * tanh(score / softcap); +
slope * (token - the query's own token); the mask. A sink is one more score in the softmax that
belongs to no token. It takes its share of the weights, and is neither scaled nor capped.
"""

import math
import random

NONE, HEADS = "none", "heads"
SINKS = (NONE, HEADS)  # whether query heads have sinks


def slopes(most: float, heads: int) -> tuple[float, ...]:
    """The ALiBi slope of each query head, from the largest bias.

    For the n heads of the largest power of two the slopes are 2^(-most * i / n), i = 1 to n; those
    of the other heads lie between them.
    """
    whole = 1 << (heads.bit_length() - 1)
    powers = [-most * (head + 1) / whole for head in range(whole)]
    powers += [-most * (2 * head + 1) / (2 * whole) for head in range(heads - whole)]
    return tuple(2.0**power for power in powers)


def sinks(heads: int, tokens: int) -> tuple[float, ...]:
    """The sink of each query head, for points. A sink is about as large as the scores of `tokens`
    tokens together, so that an answer without it is clearly wrong.
    """
    draw = random.Random(heads)
    return tuple(math.log(max(1, tokens)) + draw.gauss(0.0, 1.0) for _ in range(heads))
