"""Checks of ops that move or read plain memory: repack, transpose, logits and the probes."""

from contextlib import ExitStack
from typing import Any

import numpy as np

from kvbench.closing import Closing
from kvbench.model import Kernel
from kvbench.native import (
    Cache,
    Library,
    chain,
    forms,
    logits_task,
    probe_task,
    repack_task,
    transpose_task,
)
from kvbench.native.team import Teams
from kvbench.verify.prepared import scratch
from kvbench.verify.reads import words_sum

_SIZES = (64, 448, 4096 + 64)  # bytes of a probe's buffers


class Wrong(Exception):
    """Raised by a check; it becomes the kernel's result."""


def require(right: Any, complaint: str) -> None:
    if not right:
        raise Wrong(complaint)


class Moves(Closing):
    """The teams of a library, and the checks that need no prepared cache."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.plainest = library.isas()[0]
        teams, self.owned = Teams(library), ExitStack()
        self.owned.callback(teams.close)
        self.team = teams.of

    def close(self) -> None:
        self.owned.close()

    # ---- moves -----------------------------------------------------------------------------------

    def check_repack(self, kernel: Kernel) -> float:
        """A cache is grown in place, by a lot, by a little and not at all. It must decode to the
        same rows.
        """
        shape: dict[str, Any] = {
            "batch": 2,
            "layout": kernel.layout,
            "dtype": kernel.dtype,
            "library": self.library,
        }
        for small, large in ((17, 50), (20, 21), (2, 300), (20, 20)):
            with scratch(self.library, Cache.size_of(3, 40, large, **shape)) as arena:
                before, after = (
                    Cache(3, 40, capacity, arena=arena, **shape) for capacity in (small, large)
                )
                k, v = np.random.default_rng(5).standard_normal(
                    (2, 2, small, 3, 40), dtype=np.float32
                )
                before.bulk(k, v, isa=self.plainest)
                before.lengths[1] //= 2
                wanted = before.numpy(isa=self.plainest)
                with repack_task(before, after, 1, isa=kernel.isa) as task:
                    self.team(1).run(task)
                got = after.numpy(isa=self.plainest)
                require(
                    after.lengths.tolist() == [small, small // 2], "the lengths were not copied"
                )
                require(all(map(np.array_equal, got, wanted)), "rows changed")
                before.close()
                after.close()
        return 0.0

    def check_transpose(self, kernel: Kernel) -> float:
        source = np.random.default_rng(6).standard_normal((2, 13, 5, 24), dtype=np.float32)
        turned, back = np.empty((2, 5, 13, 24), np.float32), np.empty_like(source)
        for start, end in ((source, turned), (turned, back)):
            with transpose_task(self.library, start, end, 2, isa=kernel.isa) as task:
                self.team(2).run(task)
        require(np.array_equal(turned, source.swapaxes(1, 2)), "rows are in the wrong place")
        require(np.array_equal(back, source), "transposing back does not give the source")
        return 0.0

    def check_logits(self, kernel: Kernel) -> float:
        """Two passes must write the last position's rows and the first's, and no others."""
        rows = np.random.default_rng(7).standard_normal((2, 37), dtype=np.float32)
        matrices, position = np.zeros((2, 5, 37), np.float32), np.array([4])
        wanted = matrices.copy()
        wanted[:, 4] = wanted[:, 0] = rows
        with logits_task(self.library, rows, matrices, position, 2, isa=kernel.isa) as task:
            self.team(2).run(task, passes=2)
        require(np.array_equal(matrices, wanted), "a row is in the wrong place")
        require(position[0] == 1, "the position did not advance")
        return 0.0

    # ---- probes, over guarded buffers ------------------------------------------------------------

    def check_read(self, kernel: Kernel) -> float:
        for form in forms(kernel.op, self.library).values():
            for after, before in self._probe(kernel, **form):
                require(all(map(np.array_equal, after, before)), "it wrote")
        return 0.0

    def check_write(self, kernel: Kernel) -> float:
        for after, before in self._probe(kernel):
            require(
                (after[0] == after[0][0]).all() and not (after[0] == before[0]).any(),
                "it left bytes unwritten",
            )
        return 0.0

    check_write_nt = check_write

    def check_copy(self, kernel: Kernel) -> float:
        for distance in (0, 2048):
            for after, before in self._probe(kernel, distance=distance):
                require(np.array_equal(after[0], before[1]), "the copy differs")
        return 0.0

    check_copy_nt = check_copy

    def check_triad(self, kernel: Kernel) -> float:
        for after, before in self._probe(kernel):
            require(
                np.allclose(after[0], before[1] + 3 * before[2], rtol=1e-6, atol=1e-6),
                "the sums are wrong",
            )
        return 0.0

    def check_flops(self, kernel: Kernel) -> float:
        with probe_task(self.library, kernel.op, 2, isa=kernel.isa, steps=100) as task:
            require(task.traffic().flops > 0, "it counts nothing")
            self.team(2).run(task)
        return 0.0

    check_dot8 = check_dot16 = check_flops

    def check_clock(self, kernel: Kernel) -> float:
        """No core does ten additions in a nanosecond. More would mean that the compiler removed
        additions.
        """
        steps = 1_000_001
        with probe_task(self.library, kernel.op, 2, isa=self.plainest, steps=steps) as task:
            seconds = self.team(2).run(task).seconds
        require(steps / seconds < 1e10, "the additions do not wait for each other")
        return 0.0

    def check_latency(self, kernel: Kernel) -> float:
        """The chain must visit every line once before it returns to the start; then the chase
        runs.
        """
        lines = 65
        with scratch(self.library, 64 * lines) as arena:
            chain(self.library, arena, 64 * lines, 3)
            links, base = arena.view(np.uint64)[::8], arena.view().ctypes.data
            at, seen = 0, set()
            while at not in seen:
                seen.add(at)
                at = (int(links[at]) - base) // 64
            require(at == 0 and len(seen) == lines, "the chain is not a single cycle")
            with probe_task(
                self.library, kernel.op, 1, isa=self.plainest, to=arena, size=64 * lines, steps=200
            ) as task:
                self.team(1).run(task)
        return 0.0

    def _probe(
        self, kernel: Kernel, **more: Any
    ) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Run a probe on each size: three buffers after and before."""
        seen = []
        for size in _SIZES:
            arenas = [scratch(self.library, size) for _ in range(3)]
            views = [arena.view(np.float32) for arena in arenas]
            for index, view in enumerate(views):
                view[:] = np.random.default_rng(index).standard_normal(view.size)
            before = [view.copy() for view in views]
            facts = dict(zip(("to", "source", "second"), arenas, strict=True)) | more
            with probe_task(self.library, kernel.op, 2, isa=kernel.isa, size=size, **facts) as task:
                self.team(2).run(task)
                if kernel.op == "read":
                    require(task.sum() == words_sum(before[0]), "it does not read each line once")
            seen.append(([view.copy() for view in views], before))
            del views, view
            for arena in arenas:
                arena.close()
        return seen
