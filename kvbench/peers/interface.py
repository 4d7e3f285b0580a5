"""What an engine is asked to do.

peer = Engine(dtype, layout, threads, path)
peer.setup(shape, k, v)       # its own store, of as many layers as len(k)
peer.ask(q)
for layer in ...: peer.step(layer)      # only this is timed
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
_LACKS = {  # the reason if an engine does not take a field of LayerShape
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
    """Parse "f32 1e-5, f16 1e-3" into a number by dtype."""
    return {dtype: float(most) for dtype, most in (each.split() for each in text.split(","))}


@dataclass(frozen=True, slots=True)
class LayerShape:
    """The shape of a layer that a step attends to. `block_tokens`: tokens of a block; 0: not paged.
    `q_len`: queries of a step, for the newest tokens. Each attends to the tokens up to its own;
    with a `window`, to the last so many of them and to the first `kept`. `v_dim`: elements of a row
    of V; 0: head_dim. `sinks`: one for each query head, or empty. `softcap`: cap of scores; 0:
    none. `alibi`: the largest bias, from which the query heads' `slopes` follow; 0: none.
    `v_dtype`: dtype of V if it differs from K's.
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
        """Elements of a row of V, and of a head's output."""
        return self.v_dim or self.head_dim

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions of a layer's queries."""
        several = (self.q_len,) if self.q_len > 1 else ()
        return *several, self.q_heads, self.head_dim

    @property
    def answered(self) -> tuple[int, ...]:
        """Dimensions of a layer's output."""
        return *self.asked[:-1], self.width_of_v

    @property
    def read(self) -> int:
        """Tokens that at least one query of a step attends to."""
        if not self.window:
            return self.context
        last = min(self.context, self.window + self.q_len - 1)
        return last + min(self.kept, self.context - last)

    @property
    def distances(self) -> np.ndarray:
        """[q_len][context]: the distance of each token from a query's own."""
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
        """float32 [q_len][context], added to a query's scores: 0, or -inf for a token that it does
        not attend to.
        """
        return np.where(self.seen, np.float32(0), np.float32(-np.inf))

    @property
    def bias(self) -> np.ndarray:
        """The mask plus ALiBi's bias: float32 [heads][q_len][context]; without ALiBi one head
        stands for all.
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
        """Regroup outputs from by_head()'s rows to queries."""
        heads = rows.reshape(self.q_heads, self.q_len, self.width_of_v)
        return heads.transpose(1, 0, 2).reshape(self.answered)


class Peer:
    """Base class of peers. Subclasses import their engine at first use, so that listing them is
    quick.

    formats:  by dtype of the store: the largest allowed error of an output, as a share of the
              outputs' root mean square. The engine's own arithmetic explains so much on up to LONG
              tokens; on longer contexts the limit grows in proportion.
    kept:     the cache's layout when the engine runs a whole model
    package:  the package to install; its version is reported
    install:  the command that installs it
    engine:   pattern for the package's file with the kernels; of several files, the largest
    function: the engine's own name of the function that a step calls
    whole:    a step goes over all layers, and takes no layer number
    sealed:   no other library can be given in place of its package's
    takes:    which other fields of LayerShape it takes
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
        """What else it needs that is missing here; empty if nothing."""
        return ""

    @classmethod
    def refuses(cls, dtype: str, shape: LayerShape) -> str:
        """Why it cannot attend to such a layer; empty if it can, or if it says so itself."""
        return ""

    @classmethod
    def lacking(cls, dtype: str, shape: LayerShape) -> str:
        """Why it cannot attend to such a layer, including fields that `takes` lacks."""
        for name, why in _LACKS.items():
            usual = LayerShape.__dataclass_fields__[name].default
            if getattr(shape, name) != usual and name not in cls.takes.split():
                return why
        if shape.v_dtype and shape.v_dtype not in cls.formats:
            return f"it has no {shape.v_dtype}"
        return cls.refuses(dtype, shape)

    @classmethod
    def library(cls, path: str) -> str:
        """The file with the engine's kernels: `path`, or a file of its package; "" if not found."""
        if path or not cls.package:
            return path
        files = metadata.files(cls.package) or ()
        found = [str(file.locate()) for file in files if fnmatch(file.name, cls.engine)]
        return max(filter(os.path.isfile, found), key=os.path.getsize, default="")

    def setup(self, shape: LayerShape, k: Sequence[np.ndarray], v: Sequence[np.ndarray]) -> None:
        """Store a layer's K and V. k, v: for each layer float32 [kv_heads][context][head_dim], of v
        [...][width_of_v], made when asked for. The dtype can hold all values exactly.
        """
        raise NotImplementedError

    def ask(self, q: np.ndarray) -> None:
        """Set the queries for the next steps: float32 [layers][q_heads][head_dim], or with several
        queries [layers][q_len][q_heads][head_dim].
        """
        raise NotImplementedError

    def rest(self) -> None:
        """Remove what steps may have added. Called before samples, untimed."""

    def step(self, layer: int) -> None:
        raise NotImplementedError

    def output(self, layer: int) -> np.ndarray:
        """The output of the last step, which was over this layer: [q_heads][width_of_v], or with
        several queries [q_len][q_heads][width_of_v].
        """
        raise NotImplementedError

    def flags(self) -> str:
        """Describe the engine after setup(), in its own words: what the function was given besides
        the tensors, and which CPU features the engine found.
        """
        return ""

    def bytes(self) -> int:
        """Bytes of a layer that a step over all tokens must read: K and V once for each KV head,
        with their scales. By default: all bytes in `_layers` for a layer.
        """
        return sum(each.nbytes for each in self._layers[0])
