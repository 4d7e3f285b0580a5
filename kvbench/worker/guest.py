"""Another engine's kernel on the bench: its process, and the check of its answers."""

import fcntl
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from kvbench.closing import Owner
from kvbench.errors import KvbenchError, WrongAnswer
from kvbench.model import Point
from kvbench.model.planes import apart
from kvbench.peers.builds import Build
from kvbench.peers.host import Host, layer_shape, steps
from kvbench.peers.interface import LONG
from kvbench.peers.known import known
from kvbench.worker.content import SEED
from kvbench.worker.decoding import Decoding
from kvbench.worker.loop import Program
from kvbench.worker.room import Room

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_MOST = 1 << 63  # bytes: more than any memory has


class Guest(Owner):
    """A peer in a line. `bench`: our kernel, asked the same. `error`: the largest so far."""

    def __init__(
        self, point: Point, bench: Decoding, data: int, build: Build, patience: float, folder: str
    ) -> None:
        self.point, self.bench = point, bench
        found = known(point.engine)
        if not all(found.takes(dtype, point.layout) for dtype in apart(point.kv_dtype)):
            why = found.lacking or "its files have changed since the run began"
            raise KvbenchError(f"the peer {point.engine}: {why}", "only this peer's rows are lost")
        self._kind, self.error = found.kind, 0.0
        most = max(self._kind.formats[dtype] for dtype in apart(point.kv_dtype))
        self._share = most * max(1.0, point.shape.context / LONG)
        self._how = self._kind, build, patience, folder, data
        super().__init__()

    def _prepare(self) -> None:
        self.host = self._owned.enter_context(Host(self.point, *self._how))
        count, self.memory, self.flags = self.host.setup(self.bench.room.signs, asked(self.bench))
        if not 0 < count < _MOST:
            raise self.host.process.failed(f"it reports that a step reads {str(count)[:20]} bytes")
        self.function = self._kind.function
        ours = self.bench.own.traffic()
        ends = ours.bytes_compulsory - ours.bytes_kv - ours.bytes_scales - ours.bytes_table
        facts = dict.fromkeys(("bytes_compulsory", "bytes_issued", "bytes_line"), count + ends)
        self.moved = replace(
            ours,
            **facts,
            bytes_kv=float(count),
            bytes_scales=0.0,
            bytes_table=0.0,
            ai=ours.flops / (count + ends),
        )
        self.bytes, layers = count, self.bench.room.slices
        self.check(dict.fromkeys([0, layers - 1, layers // 2]))
        self.program = Program(
            self.point.name, self.host, steps(layers, self.moved), warm=False, memory=id(self)
        )

    def place_code(self) -> None:
        """Move the engine's code to fresh memory of its process."""
        self.host.ask("place_code")

    def idle(self) -> None:
        """Time a step that reads next to nothing, while no other guest works."""
        self.overhead = float(self.host.ask("overhead"))

    def check(self, layers: Iterable[int]) -> None:
        for layer in layers:
            self._right(*self.host.ask("answer", layer)[:2])

    def after(self, others: np.ndarray) -> None:
        """Check what the samples left; then ask other queries."""
        self._right(*self.host.ask("left"))
        self.host.ask("ask", others)

    def _right(self, layer: int, out: np.ndarray) -> None:
        shape = layer_shape(self.point)
        right = self.bench.queries.right().out.reshape(shape.answered)
        right = right * self.bench.room.signs[layer, 1, : shape.width_of_v]
        off = np.abs(out - right) if out.shape == right.shape else np.full(1, np.inf)
        limit = self._share * np.sqrt(np.mean(right**2))
        if not (off <= limit).all():
            raise WrongAnswer(
                f"the peer {self.point.engine} is off by {off.max():.3g}; for"
                f" {self.point.kv_dtype} at most {limit:.3g} is allowed",
                "try another version of the engine",
            )
        self.error = max(self.error, float(off.max()))


def asked(bench: Decoding) -> np.ndarray:
    """The bench's queries as Peer.ask() takes them: of the one sequence that peers have."""
    return bench.queries.q.reshape(-1, *layer_shape(bench.point).asked).copy()


def look_after(guests: Collection[Guest], bench: Decoding) -> None:
    """Check what the samples left, and then the answers to other queries."""
    bench.queries.ask(SEED + 1)
    others = asked(bench)
    bench.queries.ask(SEED)
    for guest in guests:
        guest.after(others)
    bench.queries.ask(SEED + 1)
    for guest in guests:
        guest.check([0])


@contextmanager
def values(room: Room, threads: int) -> Iterator[int]:
    """A room's first slice as float32 in a nameless file, K and then V:
    [kv_heads][tokens][elements]. No engine can change what others get.
    """
    cache, tokens = room.caches[0], room.point.shape.context
    rows = cache.rows(0, tokens, cache.library.isas()[0], threads)
    file = os.memfd_create("kvbench", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(file, "wb", closefd=False) as to:
            for each in rows:
                to.write(np.ascontiguousarray(each[0].transpose(1, 0, 2), dtype=np.float32).data)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
        yield file
    finally:
        os.close(file)
