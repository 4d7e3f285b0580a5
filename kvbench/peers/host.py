"""A peer of a point as the measuring process sees it: like a team, whose tasks are layers."""

import tempfile
from dataclasses import astuple
from time import perf_counter
from typing import Any

from kvbench.closing import Closing
from kvbench.errors import Unsupported
from kvbench.model import Point, Times
from kvbench.model.scores import NONE, sinks, slopes
from kvbench.native import Cache
from kvbench.peers.builds import Build
from kvbench.peers.interface import LayerShape, Peer
from kvbench.peers.process import Process

_THREADS = ("OMP", "OPENBLAS", "MKL")
_FOLDERS = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")
_HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # malloc then asks for huge pages


def layer_shape(point: Point) -> LayerShape:
    shape, heads = point.shape, point.shape.q_heads
    return LayerShape(
        q_heads=heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        context=shape.context,
        block_tokens=point.block_tokens if Cache.is_paged(point.layout) else 0,
        q_len=shape.q_len,
        window=shape.window,
        kept=shape.kept,
        v_dim=shape.v_dim if shape.v_dim != shape.head_dim else 0,
        sinks=() if shape.sinks == NONE else sinks(heads, shape.attended),
        softcap=shape.softcap,
        alibi=shape.alibi,
        slopes=slopes(shape.alibi, heads) if shape.alibi else (),
        v_dtype=point.v_dtype,
    )


class Host(Closing):
    """A peer's process in the role of a team. `run` takes layers, which must be consecutive."""

    def __init__(
        self, point: Point, kind: type[Peer], build: Build, patience: float, folder: str, data: int
    ) -> None:
        """folder: gets a subfolder for what engines leave behind, such as traces of their use.
        data: a file with the values.
        """
        self.point, self._data = point, data
        self._left = tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)
        environment = {
            **{f"{name}_NUM_THREADS": str(point.threads) for name in _THREADS},
            **dict.fromkeys(_FOLDERS, self._left.name),
            **({} if point.pages == "base" else _HUGE),
        }
        try:
            self.process = Process(
                point.engine, kind, build.python, point.cpus, patience, environment, (data,)
            )
        except BaseException:
            self._left.cleanup()
            raise
        self._how = point.dtype, point.layout, point.threads, build.path

    def setup(self, *facts: Any) -> tuple[int, dict[str, int], str]:
        """Call Child.setup()."""
        self.ask("begin", self.process.where, *self._how)
        sizes = astuple(layer_shape(self.point))
        found: tuple[int, dict[str, int], str] = self.ask("setup", sizes, self._data, *facts)
        return found

    def run(
        self, *layers: "PeerStep", passes: int = 1, between: None = None, load: object = None
    ) -> Times:
        if load is not None:
            raise Unsupported("no load runs beside an engine's step", "leave out the load")
        start = perf_counter()
        taken, switches, faults = self.ask("run", [each.layer for each in layers], passes)
        wall = perf_counter() - start
        if not (min(taken) > 0 and sum(taken) <= wall):  # also if one is not a number
            raise self.process.failed(f"it reports {sum(taken):.3g} s, but {wall:.3g} s passed")
        return Times(sum(taken), tuple(taken), (sum(taken),), (), switches, faults)

    def ask(self, *what: Any) -> Any:
        return self.process.ask(*what)

    def close(self) -> None:
        self.process.close()
        self._left.cleanup()


class PeerStep:
    """A layer of a peer, in the role of a task."""

    def __init__(self, layer: int, moved: Any) -> None:
        self.layer, self._moved = layer, moved

    def traffic(self) -> Any:
        return self._moved


def steps(layers: int, moved: Any) -> tuple[PeerStep, ...]:
    return tuple(PeerStep(layer, moved) for layer in range(layers))
