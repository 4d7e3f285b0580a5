"""The rounding of `dot`, restated in NumPy: a query is rounded by K's dtype, weights by V's.

For rows that are codes times scales: to integers, the largest of a block, or of all, being LARGEST.
For rows that are floats: each to bf16. H KV heads, G query heads per KV head, T tokens.
"""

import ml_dtypes
import numpy as np

from tests.formats import BLOCK

LARGEST = 127  # whole number
BITS = 8  # significant ones of a bf16
HALF = 2.0**-BITS  # the most that rounding moves a number, as a share of it
LOG2_E = np.float32(1.44269504)
TILE = 1024  # the most tokens whose weights a kernel handles together


def query(side, q: np.ndarray, scale: float) -> np.ndarray:
    """q [Hq, D] as a kernel rounds it for such a K, in float32 steps."""
    factor = np.float32(scale) * LOG2_E * (np.float32(side.tensor) or np.float32(1))
    with np.errstate(all="ignore"):
        if side.channel is not None:
            channel = side.channel.repeat(len(q) // len(side.channel), axis=0)
            steps = in_steps(q.astype(np.float32) * channel * factor, side.block)
            return steps / (np.float64(factor) * channel)
        scaled = q.astype(np.float32) * factor
        own = in_steps(scaled, side.block) if side.whole else as_bf16(scaled)
        return own / np.float64(factor)


def as_bf16(values: np.ndarray) -> np.ndarray:
    return values.astype(ml_dtypes.bfloat16).astype(np.float64)


def in_steps(scaled: np.ndarray, block: int) -> np.ndarray:
    parts = [
        np.abs(scaled[..., at : at + block]).max(axis=-1, keepdims=True)
        for at in range(0, scaled.shape[-1], block)
    ]
    most = np.concatenate(parts, axis=-1).repeat(block, axis=-1)[..., : scaled.shape[-1]]
    inverse = np.float32(LARGEST) / most
    whole = np.rint(scaled * np.where(inverse <= np.float32(3e38), inverse, np.float32(0)))
    return whole.astype(np.float64) * (most / np.float32(LARGEST)).astype(np.float64)


def bf16_off(weights: np.ndarray, v: np.ndarray, plain: bool) -> np.ndarray:
    """How far an output [H, G, D] may be off because its weights [H, G, T] are bf16. `plain`: the
    signs of the errors are random.
    """
    most = HALF * (weights @ np.abs(v))
    return np.minimum(most, 6 * HALF * np.sqrt(weights**2 @ v**2 / 3)) if plain else most


def steps_off(weights: np.ndarray, v: np.ndarray, v_scale: np.ndarray, plain: bool) -> np.ndarray:
    """The same for integer weights, the largest of a tile being LARGEST: half a step for each,
    whatever tile a token falls into.

    v_scale: [H, T, parts], one for each group of elements that share weights. `plain`: the signs of
    the errors are random.
    """
    parts = v_scale.shape[2]
    block = BLOCK if parts > 1 else v.shape[2]
    own = (
        _part_off(weights, v[..., i * block :][..., :block], np.abs(v_scale[..., i]), plain)
        for i in range(parts)
    )
    return np.concatenate(list(own), axis=2)


def _part_off(weights: np.ndarray, v: np.ndarray, v_scale: np.ndarray, plain: bool) -> np.ndarray:
    heavy = weights * v_scale[:, None, :]
    blocks = -(-heavy.shape[2] // TILE)
    tiles = np.zeros((*heavy.shape[:2], (blocks + 2) * TILE))
    tiles[..., TILE : TILE + heavy.shape[2]] = heavy
    tiles = tiles.reshape(*heavy.shape[:2], blocks + 2, TILE).max(axis=3)
    near = np.maximum(np.maximum(tiles[..., :-2], tiles[..., 1:-1]), tiles[..., 2:])
    step = np.repeat(near, TILE, axis=2)[..., : heavy.shape[2]] / LARGEST
    codes = np.divide(
        np.abs(v), v_scale[..., None], out=np.zeros_like(v), where=v_scale[..., None] > 0
    )
    # a tile with smaller weights counts as 0
    most = step @ codes / 2 + 1e-31 * heavy.shape[2]
    return np.minimum(most, 6 * np.sqrt(step**2 @ codes**2 / 12)) if plain else most
