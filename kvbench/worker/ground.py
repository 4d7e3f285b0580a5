"""The memory of a process that measures: taken once, and stood on by one room after another.

Fresh pages cost more than what is measured on them. But pages lie where they were first touched: so they are used again
only for CPUs of the same NUMA node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kvbench.machine import describe
from kvbench.model import Machine
from kvbench.native import Arena, Library, Task, Team, probe_task


@dataclass(frozen=True, slots=True)
class _Held:
    arena: Arena
    pages: str
    node: int | None


class Ground:
    """`most`: bytes by kind of pages that the largest room will ask for."""

    def __init__(self, library: Library, machine: Machine | None = None, most: Mapping[str, int] | None = None) -> None:
        self.library, self.machine, self._most = library, machine or describe(), most or {}
        self._nodes = {cpu.cpu: cpu.node for cpu in self.machine.cpus}
        self._rooms: _Held | None = None
        self._far: _Held | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for held in filter(None, (self._rooms, self._far)):
            held.arena.close()
        self._rooms = self._far = None

    def node(self, cpus: Sequence[int]) -> int | None:
        """Of all these CPUs; None where they are of several."""
        nodes = {self._nodes.get(cpu, -1) for cpu in cpus}
        return nodes.pop() if len(nodes) == 1 else None

    def arena(self, cpus: Sequence[int], pages: str, size: int) -> Arena:
        """At least `size` bytes for the threads on `cpus`; what was given out before must not be used any more."""
        node, held, self._rooms = self.node(cpus), self._rooms, None
        if held and not self._serves(held, pages, node, size):
            held.arena.close()
            held = None
        size = size if node is None else max(size, self._most.get(pages, 0))
        self._rooms = held or _Held(Arena(size, pages, library=self.library), pages, node)
        return self._rooms.arena

    def far(self, team: Team, cpus: Sequence[int], pages: str, size: int) -> Arena:
        """Touched memory of its own, for what shall find nothing in a cache or throw out what is there."""
        node, held, self._far = self.node(cpus), self._far, None
        if held and not self._serves(held, pages, node, size):
            held.arena.close()
            held = None
        if held is None:
            held = _Held(Arena(size, pages, library=self.library), pages, node)
            with _write(self.library, held.arena, team.threads) as task:
                team.run(task)
        self._far = held
        return held.arena

    def _serves(self, held: _Held, pages: str, node: int | None, size: int) -> bool:
        return node is not None and (held.node, held.pages) == (node, pages) and held.arena.size >= size


def _write(library: Library, arena: Arena, threads: int) -> Task:
    return probe_task(library, "write", threads, isa=library.isas()[0], to=arena, size=arena.size // 64 * 64)
