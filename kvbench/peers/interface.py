"""What an engine is asked for.

peer = Engine(dtype, layout, threads, path)
peer.setup(shape, k, v)       # its own store, of as many layers as len(k)
peer.ask(q)
for layer in ...: peer.step(layer)      # that alone is timed
peer.output()
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import metadata
from typing import Any

import numpy as np

LONG = 4096  # tokens


def stated(text: str) -> dict[str, float]:
    """ "f32 1e-5, f16 1e-3": by dtype."""
    return {dtype: float(most) for dtype, most in (each.split() for each in text.split(","))}


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Of a layer that a step attends to. `block_tokens`: of a block, where the layout is paged,
    else 0. `q_len`: queries of a step, for the newest tokens: each attends to the tokens up to its
    own.
    """

    q_heads: int
    kv_heads: int
    head_dim: int
    context: int
    block_tokens: int = 0
    q_len: int = 1

    @property
    def group(self) -> int:
        """Query heads for each KV head."""
        return self.q_heads // self.kv_heads

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions of a layer's queries and of what it answers."""
        several = (self.q_len,) if self.q_len > 1 else ()
        return *several, self.q_heads, self.head_dim

    @property
    def mask(self) -> np.ndarray:
        """float32 [q_len][q_len], what is added to a query's scores of the newest tokens: 0, or
        -inf where it does not attend to one.
        """
        return np.triu(np.full((self.q_len, self.q_len), -np.inf, np.float32), 1)

    def by_head(self, q: np.ndarray) -> np.ndarray:
        """A layer's queries as rows of its KV heads: [kv_heads][group * q_len][head_dim]."""
        rows = q.reshape(self.q_len, self.kv_heads, self.group, self.head_dim)
        return rows.transpose(1, 2, 0, 3).reshape(self.kv_heads, -1, self.head_dim)

    def by_query(self, rows: np.ndarray) -> np.ndarray:
        """What by_head() has made into rows, as it was."""
        heads = rows.reshape(self.q_heads, self.q_len, self.head_dim)
        return heads.transpose(1, 0, 2).reshape(self.asked)


class Peer:
    """Subclasses import their engine where it is first used, so that this costs nothing where they
    are listed.

    formats:  by dtype of the store, the largest error of an output that is right, as a share of
              the outputs' root mean square: what that engine's own arithmetic explains on up to
              LONG tokens; in proportion, where there are more
    kept:     the layout of its cache where it runs a whole model
    package:  what has to be installed, and whose version is told
    install:  how: a command
    engine:   the name of the file of its package that its kernels lie in, as a pattern; of several
              the largest
    function: what a step calls, by the engine's own name of it
    whole:    a step goes over all layers, and takes no number
    sealed:   no library can be named in place of its package's
    several:  it takes several queries a step
    """

    formats: dict[str, float] = {}
    layouts = "head"
    kept = "head"
    package = ""
    install = ""
    engine = "*.so*"
    function = ""
    whole = False
    sealed = False
    several = False
    _layers: Sequence[Sequence[Any]]

    def __init__(self, dtype: str, layout: str, threads: int, path: str = "") -> None:
        self.dtype, self.layout, self.threads, self.path = dtype, layout, threads, path

    @classmethod
    def lacks(cls, path: str) -> str:
        """What else it needs and does not have here; empty where all is there."""
        return ""

    @classmethod
    def refuses(cls, dtype: str, shape: LayerShape) -> str:
        """Why it cannot attend to such a layer; empty where it can, or where it says so itself."""
        return ""

    @classmethod
    def library(cls, path: str) -> str:
        """The file that its kernels lie in: the one that was named, or one of its package; empty
        where there is none.
        """
        if path or not cls.package:
            return path
        files = metadata.files(cls.package) or ()
        found = [str(file.locate()) for file in files if fnmatch(file.name, cls.engine)]
        return max(filter(os.path.isfile, found), key=os.path.getsize, default="")

    def setup(self, shape: LayerShape, k: Sequence[np.ndarray], v: Sequence[np.ndarray]) -> None:
        """k, v: of each layer float32 [kv_heads][context][head_dim], made when it is asked for; the
        values are such as the dtype can hold.
        """
        raise NotImplementedError

    def ask(self, q: np.ndarray) -> None:
        """float32 [layers][q_heads][head_dim]: the queries from now on. Where a step has several:
        [layers][q_len][q_heads][head_dim].
        """
        raise NotImplementedError

    def rest(self) -> None:
        """Before samples, untimed: what steps may have added is taken away."""

    def step(self, layer: int) -> None:
        raise NotImplementedError

    def output(self, layer: int) -> np.ndarray:
        """[q_heads][head_dim] of the last step over that layer, which was the last of all. Where a
        step has several queries: [q_len][q_heads][head_dim].
        """
        raise NotImplementedError

    def flags(self) -> str:
        """After setup(), in the engine's words: what the function was given beside the tensors, and
        what the engine has found of this CPU.
        """
        return ""

    def bytes(self) -> int:
        """Of a layer, that a step has to read: K and V once for each KV head, with their scales.
        Unless a subclass says otherwise, all that its `_layers` holds for a layer.
        """
        return sum(each.nbytes for each in self._layers[0])
