"""The right answers of kernels. They are computed once in a run for each set of data, and left in a
folder for later processes.

An answer is that of float64 NumPy on the decoded cache. It does not depend on layout, tier or
threads. It depends on the variant only if that reads values as another dtype, or rounds queries.
"""

import hashlib
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kvbench.model import Point, Shape
from kvbench.model.masks import TREE, tokens_seen
from kvbench.model.planes import PLANES, apart
from kvbench.model.scores import HEADS, sinks, slopes
from kvbench.native import Cache, times_channel
from kvbench.oracle import (
    Levels,
    Scores,
    attention,
    attention_in_steps,
    rounded,
    tolerance,
)

_Reads = tuple[str | None, str | None]  # how K is read, and V


@dataclass(frozen=True, slots=True)
class Answer:
    """A right answer. `out`: float64 of the shape of the queries. `limit`: the largest allowed
    error, for all of it or for each number.
    """

    out: np.ndarray
    limit: np.ndarray


class Answers:
    """Answers kept in `folder`; by default none is kept. `content`: what the caches hold, if not
    what rooms are filled with.
    """

    def __init__(self, folder: str = "", content: str = "") -> None:
        self._folder = Path(folder) if folder else None
        self._content = content

    def holding(self, content: str) -> "Answers":
        """Answers for caches that hold this content."""
        return Answers(str(self._folder or ""), content)

    def of(
        self, point: Point, cache: Cache, q: np.ndarray, signs: Sequence[Any] = (1, 1)
    ) -> Answer:
        """The answer for a cache. signs: change those of K and V in the cache first."""
        s = point.shape
        shape = (s.batch, s.q_heads, s.kv_heads, s.head_dim, s.context, s.window, s.lengths)
        queries = s.q_len, s.mask, s.v_dim, scores_of(s), point.k_scale
        data = *taken(point, cache), point.scale, shape, queries, self._content
        rests_on = repr(data).encode() + q.tobytes()
        path = self._folder and self._folder / f"{hashlib.sha256(rests_on).hexdigest()[:32]}.npy"
        if path is None or not path.is_file():
            k, v = (
                sign if np.isscalar(sign) else sign[:dim]
                for sign, dim in zip(signs, cache.dims, strict=True)
            )
            return _computed(path, point, cache, q * k, v)
        dims = *q.shape[:-1], s.width_of_v
        limit, out = np.split(np.load(path, allow_pickle=False), [-math.prod(dims)])
        return Answer(out.reshape(dims), limit.reshape(dims) if limit.size > 1 else limit[0])


def scores_of(shape: Shape) -> Scores:
    """What changes the scores of a shape. Sinks are about as large as all scores together."""
    heads = shape.q_heads
    return Scores(
        softcap=shape.softcap,
        slopes=slopes(shape.alibi, heads) if shape.alibi else None,
        sinks=sinks(heads, shape.attended) if shape.sinks == HEADS else None,
        kept=shape.kept,
    )


def taken(point: Point, cache: Cache) -> tuple[str, _Reads, tuple[Levels, Levels] | None]:
    """How a point's kernel reads its cache: the dtype of what is stored; the dtypes as whose values
    it reads K and V, if not as their own; and to what it rounds queries and weights.
    """
    library, variant, word = cache.library, point.variant, point.kv_dtype
    reads = [
        read if (read := library.reads(variant, point.layout, dtype, plane)) != dtype else None
        for plane, dtype in zip(PLANES, apart(word), strict=True)
    ]
    return (
        word,
        (reads[0], reads[1]),
        library.levels(variant, word, point.shape.head_dim, point.shape.width_of_v),
    )


def _computed(path: Path | None, point: Point, cache: Cache, q: np.ndarray, sign: Any) -> Answer:
    largest, (_, reads, levels) = 0.0, taken(point, cache)
    # A kernel that rounds q multiplies it by scales of channels first, and reads codes.
    channel = cache.channel if levels else None
    held = np.minimum(cache.lengths, cache.struct.capacity)  # rows() begins at the oldest token

    def rows(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        nonlocal largest
        stored = cache.rows(first, count, cache.library.isas()[0], point.threads)
        k, v = (
            rounded(own, read) if read else own for own, read in zip(stored, reads, strict=True)
        )
        largest = max(largest, float(v.max()), -float(v.min()))
        return k if channel is None else np.rint(k / channel), v

    mask = point.shape.mask
    tree = tokens_seen(TREE, point.shape.q_len) if mask == TREE else None
    asked: dict[str, Any] = {
        "window": cache.window,
        "mask": mask,
        "tree": tree,
        "scores": scores_of(point.shape),
    }
    if levels:
        q = q if channel is None else times_channel(q, channel)
        out, off = attention_in_steps(q, rows, held, levels, **asked)
    else:
        out, off = attention(q, rows, held, **asked), np.zeros(())
    found = Answer(out * sign, tolerance(largest, point.shape.context) + off)
    if path:
        with suppress(OSError):  # it is computed again next time
            part = path.with_name(f"{path.stem}.{os.getpid()}.part.npy")
            np.save(
                part, np.concatenate([found.limit.ravel(), found.out.ravel()]), allow_pickle=False
            )
            part.replace(path)
    return found
