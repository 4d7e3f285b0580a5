"""Others on the machine: threads on cores that a point leaves free, which stream memory while
samples of it are taken.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from threading import Event

from kvbench.native import Task, Team
from kvbench.units import gbps

PIECES = 16  # of memory that no cache holds: they read one after the other,
_AHEAD = 4  # and so many before a sample begins: caches are full of theirs by then


class Neighbour:
    """`reads`: tasks of the team, each of another piece of memory."""

    def __init__(self, team: Team, cpus: Sequence[int], reads: Iterable[Task]) -> None:
        self._team, self._cpus, self._reads = team, cpus, cycle(reads)
        self._bytes, self._seconds = 0.0, 0.0

    @contextmanager
    def streaming(self) -> Iterator[None]:
        begun, over = Event(), Event()
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self._stream, begun, over)
            begun.wait()
            try:
                yield
            finally:
                over.set()
                work.result()

    @property
    def gbps(self) -> float:
        return gbps(self._bytes, self._seconds)

    def _stream(self, begun: Event, over: Event) -> None:
        os.sched_setaffinity(0, self._cpus)  # of this thread, which calls the team
        try:
            for number, read in enumerate(self._reads, 1):
                self._seconds += self._team.run(read).seconds
                self._bytes += read.traffic().bytes_compulsory
                if number == _AHEAD:
                    begun.set()
                if number >= _AHEAD and over.is_set():
                    return
        finally:
            begun.set()
