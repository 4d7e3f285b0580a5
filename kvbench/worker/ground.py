"""The memory of a measuring process: taken when more is needed, and used by one room after another.

Fresh pages cost more than the measurement on them. But pages lie where they were first touched, so
they are used again only for CPUs of the same NUMA node.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kvbench.closing import Closing
from kvbench.errors import Refused
from kvbench.machine import describe
from kvbench.machine.placement import memory_nodes
from kvbench.model import Machine
from kvbench.model.point import INTERLEAVE, LOCAL
from kvbench.native import Arena, Library, Part, Team, chain, numa, probe_task

_BLOCK = 1 << 20  # bytes of random numbers
_SEED = 1
_PLACED = 0.9  # of the share of its memory that a node should have


class Ground(Closing):
    """The arenas of a process. `_held`: arenas by use, each with its pages, the node of all that
    touched it, and its memory.
    """

    def __init__(self, library: Library, machine: Machine | None = None) -> None:
        self.library, self.machine = library, machine or describe()
        self._held = dict[str, tuple[Arena, str, int | None, str]]()
        self._nodes = {cpu.cpu: cpu.node for cpu in self.machine.cpus}

    def close(self) -> None:
        while self._held:
            self._held.popitem()[1][0].close()

    def node(self, cpus: Sequence[int]) -> int | None:
        """The node of all these CPUs; None if they are on several."""
        nodes = {self._nodes.get(cpu, -1) for cpu in cpus}
        return nodes.pop() if len(nodes) == 1 else None

    def arena(
        self, cpus: Sequence[int], pages: str, size: int, place: int = 0, memory: str = LOCAL
    ) -> Arena:
        """At least `size` bytes for the threads on `cpus`. The arena given out before for that
        `place` must not be used any more.
        """
        return self._take(f"rooms{place or ''}", cpus, pages, size, memory)[0]

    def leave(self, places: Iterable[int]) -> None:
        """Give back the arenas of these places."""
        for place in places:
            if held := self._held.pop(f"rooms{place or ''}", None):
                held[0].close()

    def far(self, team: Team, cpus: Sequence[int], pages: str, size: int, parts: int = 1) -> Arena:
        """Separate memory of random bytes that no cache or memory controller can shorten. `parts`:
        how many buffers of it are walked side by side, each split among the threads.
        """
        arena, fresh = self._take("far", cpus, pages, size)
        if fresh:
            each = arena.size // parts // 64 * 64
            for part in range(parts):
                touch(team, arena.part(part * each, each))
            fill(arena.view(), team.threads)
        return arena

    def cycle(self, team: Team, cpu: int, pages: str, size: int) -> tuple[Part, dict[str, int]]:
        """At least `size` bytes whose lines form a random cycle, for that team's thread; and what
        Arena.inspect() says of it. Linking 512 MiB takes a second.
        """
        arena, fresh = self._take("cycle", (cpu,), pages, size)
        whole = arena.part(0, arena.size // 64 * 64)
        if fresh:
            touch(team, whole)
            chain(self.library, whole, whole.size, _SEED)
        return whole, arena.inspect()

    def spare(self) -> None:
        """Give back the cycle; nobody walks it now. The next request makes a new one."""
        if held := self._held.pop("cycle", None):
            held[0].close()

    def held(self) -> int:
        """Bytes that rooms hold, to be used again or given back."""
        rooms = self._held.get("rooms")
        return rooms[0].inspect()["resident_bytes"] if rooms else 0

    def _take(
        self, use: str, cpus: Sequence[int], pages: str, size: int, memory: str = LOCAL
    ) -> tuple[Arena, bool]:
        """An arena, and whether it is fresh."""
        node, (arena, *of) = self.node(cpus), self._held.pop(use, (None, "", None, ""))
        fresh = False
        if arena is None or node is None or of != [pages, node, memory] or arena.size < size:
            if arena:
                arena.close()
            arena, fresh = Arena(size, pages, library=self.library), True
            if memory != LOCAL:
                numa.bind(arena, self._asked(memory))
        self._held[use] = arena, pages, node, memory
        return arena, fresh

    def _asked(self, memory: str) -> list[int]:
        """The nodes that the word stands for."""
        if memory == INTERLEAVE:
            return memory_nodes(self.machine)
        return [int(memory.removeprefix("node"))]

    def refuse_elsewhere(self, arena: Arena, size: int, memory: str) -> None:
        """Refuse filled memory that does not lie where it was asked for."""
        found, asked = numa.placed(arena, size), self._asked(memory)
        least = min(found[node] for node in asked) * len(asked) / max(1, found.total())
        if least < _PLACED:
            where = ", ".join(
                f"{count / found.total():.0%} on node {node}"
                for node, count in sorted(found.items())
            )
            raise Refused(
                f"memory = {memory} was asked for, but its pages lie {where or 'nowhere'}",
                "free that node",
            )


def touch(team: Team, part: Part) -> None:
    """Touch memory first by the threads, each its share, so that the pages lie near them."""
    library = team.library
    with probe_task(
        library, "write", team.threads, isa=library.isas()[0], to=part, size=part.size
    ) as task:
        team.run(task)


def fill(view: np.ndarray, threads: int) -> None:
    """Fill with random blocks. All are the same block mixed with its place, so no two pages are
    alike. The pages are placed already, so any thread may write them.
    """
    block = np.random.default_rng(_SEED).integers(0, 1 << 64, _BLOCK // 8, dtype=np.uint64)

    def write(start: int) -> None:
        whole = view[start : start + _BLOCK]
        part = whole[: whole.size // 8 * 8].view(np.uint64)
        np.bitwise_xor(block[: part.size], np.uint64(start), out=part)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(0, view.size, _BLOCK)))
