"""What a decode does to its scores besides scaling them, restated from the comments of
kernels/abi.h: a cap, slopes, sinks. H KV heads, G query heads per KV head, T tokens.
"""

from dataclasses import dataclass

import numpy as np

UNIT = 2.0**-24  # of float32
EXP_ERROR = 4 * UNIT  # relative, of the kernels' exp2


@dataclass(frozen=True)
class Scores:
    """The fields of a kvb_decode about scores."""

    softcap: float = 0.0  # a float32
    slopes: np.ndarray | None = None  # float32 [Hq]
    sinks: np.ndarray | None = None  # float32 [Hq]

    def of(self, products: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Scores from scaled products [H, G, T]. distance: [T], from the query's own token to
        each.
        """
        found = products
        if self.softcap:
            found = self.softcap * np.tanh(found / self.softcap)
        if self.slopes is not None:
            found = found + _by_head(self.slopes, found) * distance
        return found

    def weights(self, scores: np.ndarray) -> np.ndarray:
        """The weights of the tokens. The sinks have the rest."""
        if self.sinks is None:
            return softmax(scores)
        sink = np.broadcast_to(_by_head(self.sinks, scores), (*scores.shape[:2], 1))
        return softmax(np.concatenate((scores, sink), axis=2))[..., :-1]

    def slip(self, scores: np.ndarray, distance: np.ndarray) -> np.ndarray | float:
        """How far float32 may be off in a score and in the largest score together: [H, G, T]."""
        off = np.full((1, 1, 1), 8 * UNIT * self.softcap)
        if self.sinks is not None:
            off = off + 4 * UNIT * np.abs(_by_head(self.sinks, scores))
        if self.slopes is not None:
            rise = 4 * UNIT * np.abs(_by_head(self.slopes, scores) * distance)
            top = scores.argmax(axis=2, keepdims=True)
            off = off + rise + np.take_along_axis(rise, top, axis=2)
        return off


PLAIN = Scores()


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _by_head(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """[H, G, 1]"""
    return values.astype(np.float64).reshape(*scores.shape[:2], 1)


# ---- attention -----------------------------------------------------------------------------------


def attend(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float,
    asked: Scores = PLAIN,
    distance: np.ndarray | None = None,
):
    """Attention of q [H, G, D] over k [H, T, D] and v [H, T, Dv] in float64 -> out [H, G, Dv] and
    an upper bound of a float32 kernel's error. distance: [T], from the query's own token.
    """
    if k.shape[1] == 0:
        return np.zeros((*q.shape[:2], v.shape[2])), np.zeros((*q.shape[:2], v.shape[2]))
    q = q.astype(np.float64)
    tokens, dim = k.shape[1:]
    distance = np.zeros(tokens) if distance is None else distance
    scores = asked.of(scale * (q @ k.swapaxes(1, 2)), distance)  # [H, G, T]
    weights = asked.weights(scores)
    steps = dim + 8  # 8: q * scale, scale of the row, shift by the maximum
    slip = (
        steps
        * UNIT
        * (abs(scale) * (np.abs(q) @ np.abs(k).swapaxes(1, 2))).max(axis=-1, keepdims=True)
    )
    slip = slip + asked.slip(scores, distance)
    grown = np.expm1(np.minimum(2 * slip, 700))  # of a weight, as a factor
    relative = grown + 2 * EXP_ERROR + (tokens + 8) * UNIT
    # a kernel drops weights below the normal range
    flushed = tokens * 2.0**-126 * np.abs(v).max(axis=1)[:, None, :]
    off = np.broadcast_to(relative, weights.shape) * weights
    bound = off @ np.abs(v) + flushed + 1e-37
    if asked is not PLAIN:  # the weights of far tokens shrink their errors in the sum
        bound += off.sum(axis=2, keepdims=True) * (weights @ np.abs(v))
    # two weighted means of the same rows, and of a sink's zero, never differ by more than these do
    least, most = v.min(axis=1)[:, None, :], v.max(axis=1)[:, None, :]
    if asked.sinks is not None:
        least, most = np.minimum(least, 0), np.maximum(most, 0)
    spread = most - least + 4 * UNIT * np.abs(v).max(axis=1)[:, None, :]
    return weights @ v, np.minimum(bound, np.maximum(spread, flushed + 1e-37))


# ---- drawn at random -----------------------------------------------------------------------------


def draw(rng, heads: int, tokens: int) -> Scores:
    """Random scores: often plain; slopes as in ALiBi, or steep ones that give far tokens little
    weight. Distances matter only beside a sink.
    """
    cap = float(np.float32(rng.choice((50.0, 30.0, 10 ** rng.uniform(0, 2)))))
    steep = rng.uniform(0, 1.5, heads) if rng.random() < 0.3 else 2.0 ** rng.uniform(-8, 0, heads)
    height = np.log(tokens) + 1 if rng.random() < 0.8 else rng.uniform(-100, 100)
    sinks = height + rng.standard_normal(heads)
    sloped = rng.random() < 0.2
    return Scores(
        softcap=cap if rng.random() < 0.2 else 0.0,
        slopes=steep.astype(np.float32) if sloped else None,
        sinks=sinks.astype(np.float32) if rng.random() < (0.6 if sloped else 0.2) else None,
    )
