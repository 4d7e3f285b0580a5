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
_LACKS = {  # what an engine does that does not take it
    "q_len": "it decodes one query a step",
    "window": "it has no window",
    "kept": "it keeps no first tokens beside a window",
    "v_dim": "its rows of V are as wide as those of K",
    "sinks": "it has no sinks",
    "softcap": "it does not cap scores",
    "alibi": "it has no slopes (ALiBi)",
    "v_dtype": "its K and V have one dtype",
}


def stated(text: str) -> dict[str, float]:
    """ "f32 1e-5, f16 1e-3": by dtype."""
    return {dtype: float(most) for dtype, most in (each.split() for each in text.split(","))}


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Of a layer that a step attends to. `block_tokens`: of a block, where the layout is paged,
    else 0. `q_len`: queries of a step, for the newest tokens: each attends to the tokens up to its
    own; with a window to the last so many of them, and to the first `kept`. `v_dim`: of a row of V;
    0: head_dim. `sinks`: of each query head, or none. `softcap`: of scores; 0: none. `alibi`: the
    largest bias, from which `slopes` of query heads are; 0: none. `v_dtype`: of V, where K has
    another.
    """

    q_heads: int
    kv_heads: int
    head_dim: int
    context: int
    block_tokens: int = 0
    q_len: int = 1
    window: int = 0
    kept: int = 0
    v_dim: int = 0
    sinks: tuple[float, ...] = ()
    softcap: float = 0.0
    alibi: float = 0.0
    slopes: tuple[float, ...] = ()
    v_dtype: str = ""

    @property
    def group(self) -> int:
        """Query heads for each KV head."""
        return self.q_heads // self.kv_heads

    @property
    def width_of_v(self) -> int:
        """Elements of a row of V, and of what a head answers."""
        return self.v_dim or self.head_dim

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions of a layer's queries."""
        several = (self.q_len,) if self.q_len > 1 else ()
        return *several, self.q_heads, self.head_dim

    @property
    def answered(self) -> tuple[int, ...]:
        """Dimensions of what a layer answers."""
        return *self.asked[:-1], self.width_of_v

    @property
    def read(self) -> int:
        """Tokens that the queries of a step attend to together."""
        if not self.window:
            return self.context
        last = min(self.context, self.window + self.q_len - 1)
        return last + min(self.kept, self.context - last)

    @property
    def distances(self) -> np.ndarray:
        """[q_len][context]: of each token from a query's own."""
        own = np.arange(self.context - self.q_len, self.context)
        return np.arange(self.context) - own[:, None]

    @property
    def seen(self) -> np.ndarray:
        """bool [q_len][context]: whether a query attends to a token."""
        far = self.distances
        found = far <= 0
        if self.window:
            found &= (far > -self.window) | (np.arange(self.context) < self.kept)
        return found

    @property
    def mask(self) -> np.ndarray:
        """float32 [q_len][context], what is added to a query's scores: 0, or -inf where it does not
        attend to a token.
        """
        return np.where(self.seen, np.float32(0), np.float32(-np.inf))

    @property
    def bias(self) -> np.ndarray:
        """The same with ALiBi's: float32 [heads][q_len][context], of one for all where there is no
        ALiBi.
        """
        slopes = np.array(self.slopes or (0,), np.float32)[:, None, None]
        return self.mask + slopes * self.distances.astype(np.float32)

    @property
    def is_masked(self) -> bool:
        """Whether a step needs the mask: it has several queries, or leaves tokens out."""
        return self.q_len > 1 or self.read < self.context

    def by_head(self, q: np.ndarray) -> np.ndarray:
        """A layer's queries as rows of its KV heads: [kv_heads][group * q_len][head_dim]."""
        rows = q.reshape(self.q_len, self.kv_heads, self.group, self.head_dim)
        return rows.transpose(1, 2, 0, 3).reshape(self.kv_heads, -1, self.head_dim)

    def by_query(self, rows: np.ndarray) -> np.ndarray:
        """What rows as by_head() has them are answered, by query."""
        heads = rows.reshape(self.q_heads, self.q_len, self.width_of_v)
        return heads.transpose(1, 0, 2).reshape(self.answered)


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
    takes:    what else it takes, by the fields of LayerShape
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
    takes = ""
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
    def lacking(cls, dtype: str, shape: LayerShape) -> str:
        """The same, and where `takes` lacks what such a layer has."""
        for name, why in _LACKS.items():
            usual = LayerShape.__dataclass_fields__[name].default
            if getattr(shape, name) != usual and name not in cls.takes.split():
                return why
        if shape.v_dtype and shape.v_dtype not in cls.formats:
            return f"it has no {shape.v_dtype}"
        return cls.refuses(dtype, shape)

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
        """k, v: of each layer float32 [kv_heads][context][head_dim], of v [...][width_of_v], made
        when it is asked for; the values are such as the dtype can hold.
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
        """[q_heads][width_of_v] of the last step over that layer, which was the last of all. Where
        a step has several queries: [q_len][q_heads][width_of_v].
        """
        raise NotImplementedError

    def flags(self) -> str:
        """After setup(), in the engine's words: what the function was given beside the tensors, and
        what the engine has found of this CPU.
        """
        return ""

    def bytes(self) -> int:
        """Of a layer, that a step over all tokens has to read: K and V once for each KV head, with
        their scales. Unless a subclass says otherwise, all that its `_layers` holds for a layer.
        """
        return sum(each.nbytes for each in self._layers[0])
