"""The timed loop: its rounds. The clock is read in `kernels/run/run.c`. In a round every program is sampled once, in an
order drawn anew, so that drift meets all alike.

for program in programs: time a few passes, which tell how many make a sample
for round in rounds:
    for program in shuffled(programs):
        one untimed pass            # its own data into the caches, unless no cache keeps them
        timed: `passes` passes      # over the program's tasks (layers), on from where the last sample of any ended
        where that took under half or over twice as long as it was to: time a few passes of the program again

Many short samples tell more than a few long ones: what disturbs them hits some, and leaves the others alone.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from kvbench.machine.disturbances import Disturbed
from kvbench.model import Sample, Traffic
from kvbench.native import Task, Team

_TIMINGS = 3  # of which the least counts: a busy moment does not spoil them all
_SHORT = 1 / 8  # of a sample, at least, is a timing


@dataclass(frozen=True, slots=True)
class Program:
    """Tasks that samples walk round robin. `between` runs untimed before each pass.

    warm: so many untimed passes come before each sample, and bring its data into the caches. 0 where none would keep it.
    """

    name: str
    tasks: tuple[Task, ...]
    between: Task | None = None
    warm: int = 1

    def traffic(self) -> Traffic:
        return self.tasks[0].traffic()


class Walk:
    """Where samples are in the slices that programs have in common: one goes on where another has ended, so that the
    next slice is always the one that was walked longest ago."""

    def __init__(self) -> None:
        self._at: dict[int, int] = {}  # by how many slices there are

    def on(self, program: Program, passes: int) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
        """The tasks of the passes before, and of so many: each to be done round robin."""
        tasks, count = program.tasks, len(program.tasks)
        at = self._at.get(count, 0)
        self._at[count] = (at + passes) % count
        before = tuple(tasks[(at - program.warm + turn) % count] for turn in range(min(program.warm, count)))
        return before, tuple(tasks[(at + turn) % count] for turn in range(min(passes, count)))


class Passes:
    """`each`: how many a program does in a sample, and how long they should take; by its name.

    All samples are as long as those of the slowest program: about `seconds`, or one pass of it where that is longer.
    What has something between its passes takes twice `seconds` by the wall, however short its own part is of that.
    """

    def __init__(self, team: Team, programs: Sequence[Program], seconds: float, walk: Walk) -> None:
        self._team, self._seconds, self._walk = team, seconds, walk
        self._programs = {program.name: program for program in programs}
        self._times = {program.name: self._timed(program) for program in programs}
        self._set()

    def again(self, name: str) -> None:
        self._times[name] = self._timed(self._programs[name])
        self._set()

    def _set(self) -> None:
        whole = [own for name, (own, _) in self._times.items() if not self._programs[name].between]
        slowest = max(whole, default=self._seconds)
        length, self.each = slowest * max(1, round(self._seconds / slowest)), dict[str, tuple[int, float]]()
        for name, (own, cost) in self._times.items():
            between = self._programs[name].between
            count = max(1, round(self._seconds / cost if between else length / own))
            self.each[name] = count, count * own if between else length

    def _timed(self, program: Program) -> tuple[float, float]:
        """Seconds of a pass, and those that it costs."""
        passes = 1
        while True:
            taken, cost = map(min, zip(*(self._timing(program, passes) for _ in range(_TIMINGS)), strict=True))
            if cost >= _SHORT * self._seconds or passes >= 1 << 24:
                return taken / passes, cost / passes
            passes *= max(2, min(16, int(2 * _SHORT * self._seconds / cost)))

    def _timing(self, program: Program, passes: int) -> tuple[float, float]:
        _, tasks = self._walk.on(program, passes)
        start = perf_counter()
        taken = max(self._team.run(*tasks, passes=passes, between=program.between).seconds, 1e-9)
        return taken, (perf_counter() - start) / 2 if program.between else taken


def rounds(
    team: Team,
    programs: Sequence[Program],
    samples: int,
    seconds: float,
    seed: int = 0,
    passes: Mapping[str, int] | None = None,
    watch: Callable[[], Disturbed] = lambda: Disturbed(0.0, 0),
) -> Iterator[Sample]:
    """`samples` rounds over all programs, about `seconds` for each sample; or so many `passes`, however long they take.

    `watch` tells what has disturbed the team so far.
    """
    shuffled, walk = random.Random(seed), Walk()
    found = None if passes else Passes(team, programs, seconds, walk)
    now = watch()
    for number in range(samples):
        for program in shuffled.sample(programs, len(programs)):
            count, asked = found.each[program.name] if found else (passes[program.name], 0.0)
            before, tasks = walk.on(program, count)
            if program.warm:
                team.run(*before, passes=program.warm)
            times = team.run(*tasks, passes=count, between=program.between)
            then, now = now, watch()
            disturbed = now.since(then)
            sample = Sample(
                program=program.name,
                round=number,
                passes=count,
                seconds=times.seconds,
                pass_seconds=times.pass_seconds,
                skew=max(times.thread_seconds) * len(times.thread_seconds) / sum(times.thread_seconds) - 1.0,
                switches=times.switches,
                faults=times.faults,
                steal=disturbed.steal,
                throttled=disturbed.throttled,
                asked=asked,
            )
            again = sample.off and number + 1 < samples
            yield sample
            del sample
            if again:
                found.again(program.name)
                now = watch()
