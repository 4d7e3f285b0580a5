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
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter

from kvbench.machine.disturbances import Disturbed
from kvbench.model import Sample, Traffic
from kvbench.native import Task, Team

_TIMINGS = 3  # of which the least counts: a busy moment does not spoil them all
_SHORT = 1 / 8  # of a sample, at least, is a timing


@dataclass(frozen=True, slots=True)
class Program:
    """Tasks that samples walk round robin, by that team. `between` runs untimed before each pass.

    warm: an untimed pass comes before each sample, and brings its data into the caches. Not where none would keep them.
    memory: what its slices lie in, by a number of its own. beside: what goes on meanwhile.
    every: how many rounds have one sample of it. seconds: of a sample, where it is shorter than those of the others.
    """

    name: str
    team: Team
    tasks: tuple[Task, ...]
    between: Task | None = None
    warm: bool = True
    memory: int = 0
    beside: Callable[[], AbstractContextManager[object]] = nullcontext
    every: int = 1
    seconds: float = 0.0

    def traffic(self) -> Traffic:
        return self.tasks[0].traffic()


def due(programs: Sequence[Program], number: int) -> list[Program]:
    """Those that are sampled in that round."""
    return [program for program in programs if number % program.every == 0]


class Walk:
    """Where samples are in the slices that programs have in common: one goes on where another has ended, so that the
    next slice is always the one that was walked longest ago."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], int] = {}  # by their memory, and how many there are

    def on(self, program: Program, passes: int) -> tuple[Task, tuple[Task, ...]]:
        """The task before, and those of so many passes, to be done round robin."""
        tasks, count = program.tasks, len(program.tasks)
        at = self._at.get((program.memory, count), 0)
        self._at[program.memory, count] = (at + passes) % count
        return tasks[at - 1], tuple(tasks[(at + turn) % count] for turn in range(min(passes, count)))


class Passes:
    """`each`: how many a program does in a sample, and how long they should take; by its name.

    All samples are as long as those of the slowest program: about `seconds`, or one pass of it where that is longer.
    What has something between its passes takes twice `seconds` by the wall, however short its own part is of that.
    """

    def __init__(self, programs: Sequence[Program], seconds: float, walk: Walk) -> None:
        self._seconds, self._walk = seconds, walk
        self._programs = {program.name: program for program in programs}
        self._times = {program.name: self._timed(program) for program in programs}
        self._set()

    def again(self, name: str) -> None:
        self._times[name] = self._timed(self._programs[name])
        self._set()

    def _set(self) -> None:
        alike = [name for name, each in self._programs.items() if not each.between and not each.seconds]
        whole = [self._times[name][0] for name in alike]
        slowest = max(whole, default=self._seconds)
        length, self.each = slowest * max(1, round(self._seconds / slowest)), dict[str, tuple[int, float]]()
        for name, (own, cost) in self._times.items():
            program = self._programs[name]
            asked = self._seconds if program.between else program.seconds or length
            count = max(1, round(asked / (cost if program.between else own)))
            self.each[name] = count, length if name in alike else count * own

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
        with program.beside():
            start = perf_counter()
            taken = max(program.team.run(*tasks, passes=passes, between=program.between).seconds, 1e-9)
            return taken, (perf_counter() - start) / 2 if program.between else taken


def rounds(
    programs: Sequence[Program],
    samples: int,
    seconds: float,
    seed: int = 0,
    passes: Mapping[str, int] | None = None,
    watch: Callable[[], Disturbed] = lambda: Disturbed(0.0, 0),
) -> Iterator[Sample]:
    """`samples` rounds over all programs, about `seconds` for each sample; or so many `passes`, however long they take.

    `watch` tells what has disturbed the teams so far.
    """
    shuffled, walk = random.Random(seed), Walk()
    found = None if passes else Passes(programs, seconds, walk)
    now = watch()
    for number in range(samples):
        for program in shuffled.sample(here := due(programs, number), len(here)):
            count, asked = found.each[program.name] if found else (passes[program.name], 0.0)
            before, tasks = walk.on(program, count)
            with program.beside():
                if program.warm:
                    program.team.run(before)
                times = program.team.run(*tasks, passes=count, between=program.between)
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
