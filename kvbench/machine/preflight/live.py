"""What no file tells: memory touched, clocks read, cores counted. The only part of the preflight that does anything."""

import os
import time
from collections import Counter
from collections.abc import Sequence

from kvbench.errors import Refused, Unsupported
from kvbench.machine.preflight.thresholds import CLOCK_ROUNDS, CLOCK_SECONDS, WARM_SECONDS
from kvbench.native import Arena, Team, default_library, numa, probe_task
from kvbench.units import cpu_text

_ADDITIONS = 1 << 20  # of a pass: some 0.3 ms


class Live:
    """The running system. It uses memory and time of its own, and leaves no setting changed."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def touched(self, size: int, cpus: Sequence[int]) -> tuple[dict[str, int], Counter[int]]:
        """Of an arena first touched by a thread on each of `cpus`: what inspect() says, and some of its pages by node."""
        _refuse_absent(cpus)
        library = default_library()
        with Team(len(cpus), cpus, library) as team, Arena(size, "thp", library=library) as arena:
            with probe_task(library, "write", len(cpus), isa=library.isas()[0], to=arena, size=size) as task:
                team.run(task)
            try:
                return arena.inspect(), numa.placed(arena, arena.size)
            except Unsupported:  # as in some containers
                return arena.inspect(), Counter()

    def clock(self, cpus: Sequence[int]) -> list[tuple[float, ...]]:
        """GHz of each of `cpus`, all under load, in round after round."""
        _refuse_absent(cpus)
        library = default_library()
        with (
            Team(len(cpus), cpus, library) as team,
            probe_task(library, "clock", len(cpus), isa=library.isa(), steps=_ADDITIONS) as task,
        ):
            pass_seconds = team.run(task, passes=4).seconds / 4
            team.run(task, passes=max(1, round(WARM_SECONDS / pass_seconds)))
            passes = max(1, round(CLOCK_SECONDS / pass_seconds))
            rounds = [team.run(task, passes=passes).thread_seconds for _ in range(CLOCK_ROUNDS)]
        return [tuple(passes * _ADDITIONS / seconds / 1e9 for seconds in round_) for round_ in rounds]


def _refuse_absent(cpus: Sequence[int]) -> None:
    """A made-up tree may name CPUs that are not here."""
    if absent := set(cpus) - os.sched_getaffinity(0):
        raise Refused(f"CPUs {cpu_text(absent)} are not here to be tried", "run doctor on the machine itself")
