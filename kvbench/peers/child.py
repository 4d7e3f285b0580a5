"""What a peer's process does after begin.py has started it. It may be another Python's process, so
it needs nothing but NumPy.
"""

import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from kvbench.peers.code import mapped, place_anew
from kvbench.peers.interface import LayerShape
from kvbench.peers.known import told

_HELD = {"resident_bytes": "Rss", "huge_bytes": "AnonHugePages"}
_SHOWN = 500  # characters of an error
_EMPTY, _TIMES = 16, 30  # tokens of a step that reads next to nothing; how often it is timed


class LayerRows(Sequence[np.ndarray]):
    """K or V of each layer: the first layer's values times the layer's own signs."""

    def __init__(self, first: np.ndarray, signs: np.ndarray) -> None:
        self._first, self._signs = first, signs

    def __len__(self) -> int:
        return len(self._signs)

    def __getitem__(self, layer: int) -> np.ndarray:  # type: ignore[override]  # no slices
        return self._first * self._signs[layer]


class Child:
    """What a peer's process can be asked. `where`: the peer's class, "module:name"."""

    def about(self, where: str, path: str) -> tuple[str, str, str]:
        """Call told()."""
        return told(_class(where), path)

    def begin(self, where: str, *how: Any) -> None:
        self._known = {each.file for each in mapped()}
        self._make = lambda: _class(where)(*how)
        self._peer = self._make()

    def setup(
        self, sizes: tuple[Any, ...], data: int, signs: np.ndarray, q: np.ndarray
    ) -> tuple[int, dict[str, int], str]:
        """Set up the engine. Return a layer's bytes, the memory that it takes, and its flags."""
        shape = LayerShape(*sizes)
        self._count, first = len(signs), _values(shape, data)
        own = [signs[:, 0, : shape.head_dim], signs[:, 1, : shape.width_of_v]]
        self._small = self._of_few_tokens(shape, first, own, q)
        self._peer.setup(shape, *map(LayerRows, first, own))
        self._peer.ask(q)
        del first
        held = Path("/proc/self/smaps_rollup").read_text().split()
        kib = {
            name: held[held.index(f"{word}:") + 1]
            for name, word in _HELD.items()
            if f"{word}:" in held
        }
        memory = {name: int(count) << 10 for name, count in kib.items()}
        count = int(self._peer.bytes()) * shape.read // shape.context
        return count, memory, " ".join(str(self._peer.flags()).split())

    def _of_few_tokens(
        self,
        shape: LayerShape,
        first: Sequence[np.ndarray],
        signs: Sequence[np.ndarray],
        q: np.ndarray,
    ) -> Any:
        few = min(max(_EMPTY, shape.q_len), shape.context)
        peer, own = self._make(), [np.array(side[:, :few]) for side in first]
        peer.setup(replace(shape, context=few), *map(LayerRows, own, signs))
        peer.ask(q)
        return peer

    def place_code(self) -> int:
        """Call place_anew() for the code that the engine has loaded."""
        return place_anew(self._known)

    def overhead(self) -> float:
        """Seconds of a layer's step over a few tokens: the cost of the binding and the engine's
        threads.
        """
        self._small.rest()
        taken = min(self._timed(self._small, [0], 1)[0] for _ in range(_TIMES))
        del self._small
        return taken

    def ask(self, q: np.ndarray) -> None:
        self._peer.ask(q)

    def answer(self, layer: int) -> tuple[int, np.ndarray, float]:
        """Do a step; return what left() does, and its seconds."""
        self._peer.rest()
        taken = self._timed(self._peer, [layer], 1)
        self._last = layer
        return *self.left(), taken[0]

    def left(self) -> tuple[int, np.ndarray]:
        """The layer of the last step, and its output."""
        return self._last, np.array(self._peer.output(self._last), dtype=np.float64)

    def run(self, layers: list[int], passes: int) -> tuple[list[float], int, int]:
        """Seconds of each pass, after an untimed pass that wakes the threads. The untimed pass uses
        the layer before the first one, so that no cache holds timed data. It avoids the last layer,
        whose answer would else be there already.
        """
        first, last = layers[0], layers[(passes - 1) % len(layers)]
        back = 1 if (first - 1) % self._count != last else 2
        self._peer.rest()
        self._timed(self._peer, [(first - back) % self._count], 1)
        before = resource.getrusage(resource.RUSAGE_SELF)
        taken = self._timed(self._peer, layers, passes)
        self._last = last
        after = resource.getrusage(resource.RUSAGE_SELF)
        return taken, after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt

    def _timed(self, peer: Any, layers: list[int], passes: int) -> list[float]:
        """Time the passes. If a step goes over all layers, run as many full steps as needed and
        give each pass its share.
        """
        step, count = peer.step, self._count if peer.whole else 1
        marks = [perf_counter()]
        for turn in range(-(-passes // count)):
            step(layers[turn % len(layers)])
            marks.append(perf_counter())
        return [float(each) / count for each in np.diff(marks).repeat(count)[:passes]]


def _values(shape: LayerShape, file: int) -> list[np.ndarray]:
    """K and V of the first layer, [kv_heads][context][elements], read one after the other."""
    dims = shape.kv_heads, shape.context
    found, start = list[np.ndarray](), 0
    for dim in (shape.head_dim, shape.width_of_v):
        own = np.memmap(f"/proc/self/fd/{file}", np.float32, "r", start, (*dims, dim))
        start += own.nbytes
        found.append(own)
    return found


def _class(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def serve(descriptor: int) -> None:
    """Answer through this pipe until it is closed. If an engine forks and the copy returns here,
    the copy ends; otherwise both would answer.
    """
    pipe, child, own = Connection(descriptor), Child(), os.getpid()
    while True:
        try:
            name, *facts = pipe.recv()
        except EOFError:
            return
        try:
            answer = True, getattr(child, name)(*facts)
        except Exception as error:  # noqa: BLE001  # any error is the peer's
            said = f"{type(error).__name__}: {error}"
            answer = False, " ".join(said.split())[:_SHOWN]
        if os.getpid() != own:
            signal.raise_signal(signal.SIGKILL)
        pipe.send(answer)
