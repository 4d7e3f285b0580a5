"""The timed loop: its rounds. The clock is read in `kernels/run/run.c`. In a round every program is sampled once, in an
order drawn anew, so that drift meets all alike.

for round in rounds:
    for program in shuffled(programs):
        one untimed pass            # its own data into the caches, unless no cache keeps them
        timed: `passes` passes      # over the program's tasks (layers), on from where the last sample of any ended

Many short samples tell more than a few long ones: what disturbs them hits some, and leaves the others alone.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from kvbench.machine.disturbances import Disturbed
from kvbench.model import Sample, Traffic
from kvbench.native import Task, Team


@dataclass(frozen=True, slots=True)
class Program:
    """Tasks that samples walk round robin. `between` runs untimed before each pass.

    warm: an untimed pass comes before each sample, and brings its data into the caches. Not where none would keep them.
    """

    name: str
    tasks: tuple[Task, ...]
    between: Task | None = None
    warm: bool = True

    def traffic(self) -> Traffic:
        return self.tasks[0].traffic()


class Walk:
    """Where samples are in the slices that programs have in common: one goes on where another has ended, so that the
    next slice is always the one that was walked longest ago."""

    def __init__(self) -> None:
        self._at: dict[int, int] = {}  # by how many slices there are

    def on(self, program: Program, passes: int) -> tuple[Task, tuple[Task, ...]]:
        """The task before, and those of so many passes, to be done round robin."""
        tasks, count = program.tasks, len(program.tasks)
        at = self._at.get(count, 0)
        self._at[count] = (at + passes) % count
        return tasks[at - 1], tuple(tasks[(at + turn) % count] for turn in range(min(passes, count)))


def passes_for(team: Team, program: Program, seconds: float) -> int:
    """Passes that take about `seconds`; twice that by the wall, where most of it goes into what lies between them."""
    passes = len(program.tasks)
    while (taken := _time(team, program, passes)) < seconds / 4 and passes < 1 << 24:
        passes *= max(2, min(16, int(seconds / 2 / max(taken, 1e-9))))
    taken = min(taken, *(_time(team, program, passes) for _ in range(2)))  # all launches go by it: it is no stall's
    return max(1, math.ceil(seconds / max(taken, 1e-9) * passes))


def _time(team: Team, program: Program, passes: int) -> float:
    start = perf_counter()
    taken = team.run(*program.tasks, passes=passes, between=program.between).seconds
    return (perf_counter() - start) / 2 if program.between else taken


def rounds(
    team: Team,
    programs: Sequence[Program],
    samples: int,
    seconds: float,
    seed: int = 0,
    passes: Mapping[str, int] | None = None,
    watch: Callable[[], Disturbed] = lambda: Disturbed(0.0, 0),
) -> Iterator[Sample]:
    """`samples` rounds over all programs, about `seconds` for each sample, or `passes` where they are known already.

    `watch` tells what has disturbed the team so far.
    """
    shuffled, known, walk = random.Random(seed), passes or {}, Walk()
    counts = {p.name: known.get(p.name) or passes_for(team, p, seconds) for p in programs}
    now = watch()
    for number in range(samples):
        for program in shuffled.sample(programs, len(programs)):
            before, tasks = walk.on(program, counts[program.name])
            if program.warm:
                team.run(before)
            times = team.run(*tasks, passes=counts[program.name], between=program.between)
            then, now = now, watch()
            disturbed = now.since(then)
            yield Sample(
                program=program.name,
                round=number,
                passes=counts[program.name],
                seconds=times.seconds,
                pass_seconds=times.pass_seconds,
                skew=max(times.thread_seconds) * len(times.thread_seconds) / sum(times.thread_seconds) - 1.0,
                switches=times.switches,
                faults=times.faults,
                steal=disturbed.steal,
                throttled=disturbed.throttled,
            )
