"""The timed loop: rounds. The clock is read in `kernels/run/run.c`. In a round every program is
sampled once, in a new random order, so that drift affects all alike.

for program in programs:
    time a few passes               # to choose how many make a sample, unless another's count does
for round in rounds:
    for program in shuffled(programs), and right after each those that follow it:
        one untimed pass            # brings its data into the caches, unless no cache keeps them
        timed: `passes` passes      # over its tasks (layers), on from where the last sample ended
    for programs whose sample took under half or over twice the intended time:
        time a few passes again

Many short samples tell more than a few long ones: a disturbance hits some of them and leaves the
others alone.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from time import perf_counter
from typing import Any, Protocol

from kvbench.machine.allowance import Disturbed
from kvbench.model import Sample, Times, Traffic
from kvbench.native import Load, Task

# The share of a sample's passes that is faster than the reported pass; so a few stalled passes do
# not count.
QUIET = 0.25

STEPS = (0.5, 0.95)  # shares of a chase's steps that take no longer than the reported ones
# Steps at the start of a chase's sample that do not count: others used the caches that translate
# its addresses.
COLD = 2
_TIMINGS = 3  # the least counts, so that one busy moment does no harm
_SHORT = 1 / 8  # least length of a timing, in samples


class Timed(Protocol):
    """A task, or a layer of a peer."""

    def traffic(self) -> Traffic:
        """What one pass moves and computes."""


class Runs(Protocol):
    """A team, or the process of a peer."""

    def run(self, *tasks: Any, passes: int = 1, between: Any = None, load: Any = None) -> Times:
        """Run `passes` passes, round robin over the tasks; `between` untimed before each; and the
        load meanwhile.
        """


@dataclass(frozen=True, slots=True)
class Program:
    """Tasks that samples walk round robin, and the team that does. `between` runs untimed before
    each pass.

    warm: an untimed pass before each sample brings the data into the caches. False if no cache
        would keep them.
    quiet: the untimed pass is the run's first, which also wakes the threads. The lower quartile of
        the others is reported.
    memory: a number for the memory that its slices lie in. load: what another team does meanwhile.
    loads: loads in a pass, if a pass is a step of a chase; else 0. COLD more steps come first.
    every: one sample in this many rounds. sample_time: seconds of a sample, if it differs from the
        others. sharers: this many programs share the time of one sample. brief: as short as was
        asked for, or one pass, whatever the other programs take.
    like: the name of another program, whose number of passes it has. A chase then has no intended
        time: its steps take longer beside a load. then: programs sampled right after it.
    place: programs run in ascending `place` within a round; equal places are shuffled.
    """

    name: str
    team: Runs
    tasks: tuple[Timed, ...]
    between: Task | None = None
    warm: bool = True
    quiet: bool = False
    memory: int = 0
    load: Load | None = None
    loads: int = 0
    every: int = 1
    sample_time: float = 0.0
    sharers: int = 1
    brief: bool = False
    like: str = ""
    then: tuple["Program", ...] = ()
    place: int = 0

    def traffic(self) -> Traffic:
        return self.tasks[0].traffic()

    def timed(self, before: Timed, tasks: Sequence[Timed], passes: int) -> Times:
        """Time passes over the tasks, after an untimed pass over `before`."""
        if self.loads:
            times = self.timing(tasks, COLD + passes)
            steps = times.pass_seconds[COLD:]
            return replace(times, seconds=sum(steps), pass_seconds=steps)
        if not self.quiet:
            if self.warm:
                self._run(before)
            return self.timing(tasks, passes)
        order = tasks if len(self.tasks) == 1 else (before, *tasks)[: len(self.tasks)]
        times = self.timing(order, passes + 1)
        counted = sorted(times.pass_seconds[1:])
        return replace(times, seconds=sum(counted), pass_seconds=(counted[int(QUIET * passes)],))

    def timing(self, tasks: Sequence[Timed], passes: int) -> Times:
        """Time passes, with nothing before them."""
        return self._run(*tasks, passes=passes, between=self.between)

    def _run(self, *tasks: Timed, **how: Any) -> Times:
        """Run with the load beside it."""
        if self.load:
            how["load"] = self.load
        return self.team.run(*tasks, **how)

    def latency(self, times: Times) -> tuple[float, ...]:
        """The latency of a Sample."""
        if not self.loads:
            return ()
        each = sorted(seconds / self.loads for seconds in times.pass_seconds)
        return tuple(each[min(len(each) - 1, int(part * len(each)))] for part in STEPS)


def flat(programs: Iterable[Program]) -> list[Program]:
    """The programs, each followed by those in its `then`."""
    return list(chain.from_iterable((program, *program.then) for program in programs))


class Walk:
    """Positions of samples in the slices that programs share. A sample goes on where the last one
    ended, so that the next slice is always the one walked longest ago.
    """

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], int] = {}  # by memory, and number of slices

    def on(self, program: Program, passes: int) -> tuple[Timed, tuple[Timed, ...]]:
        """The task before, and the tasks of `passes` passes, to be done round robin."""
        tasks, count = program.tasks, len(program.tasks)
        at = self._at.get((program.memory, count), 0)
        self._at[program.memory, count] = (at + passes) % count
        return tasks[at - 1], tuple(
            tasks[(at + turn) % count] for turn in range(min(passes, count))
        )


class Passes:
    """The passes of all programs. `each`: by program's name, its passes in a sample and their
    intended seconds. All samples are as long as those of the slowest program: about `sample_time`,
    or one pass if that is longer. With something between its passes, a program takes twice as long
    by the wall, however short its own share.
    """

    def __init__(self, programs: Sequence[Program], sample_time: float, walk: Walk) -> None:
        self._sample_time, self._walk = sample_time, walk
        self._programs = {program.name: program for program in programs if not program.like}
        self._like = [program for program in programs if program.like]
        self._times = {name: self._timed(program) for name, program in self._programs.items()}
        self._set()

    def again(self, names: Iterable[str]) -> None:
        self._times |= {
            name: self._timed(self._programs[name]) for name in names if name in self._programs
        }
        self._set()

    def _set(self) -> None:
        alike = [
            name
            for name, each in self._programs.items()
            if not (each.between or each.sample_time or each.brief or each.sharers > 1)
        ]
        whole = [self._times[name][0] for name in alike]
        slowest = max(whole, default=self._sample_time)
        length, self.each = (
            slowest * max(1, round(self._sample_time / slowest)),
            dict[str, tuple[int, float]](),
        )
        for name, (own, cost) in self._times.items():
            program = self._programs[name]
            brief = program.between or program.brief
            asked = program.sample_time or (
                (self._sample_time if brief else length) / program.sharers
            )
            count = max(1, round(asked / (cost if program.between else own)))
            self.each[name] = count, length if name in alike else count * own
        for program in self._like:
            count, meant = self.each[program.like]
            self.each[program.name] = count, 0.0 if program.loads else meant

    def _timed(self, program: Program) -> tuple[float, float]:
        """Seconds of a pass as timed, and by the wall clock."""
        passes, least = 1, _SHORT * max(self._sample_time, program.sample_time)
        while True:
            taken, cost = map(
                min, zip(*(self._timing(program, passes) for _ in range(_TIMINGS)), strict=True)
            )
            if cost >= least or passes >= 1 << 24:
                return taken / passes, cost / passes
            passes *= max(2, min(16, int(2 * least / cost)))

    def _timing(self, program: Program, passes: int) -> tuple[float, float]:
        _, tasks = self._walk.on(program, passes)
        start = perf_counter()
        taken = max(program.timing(tasks, passes).seconds, 1e-9)
        return taken, (perf_counter() - start) / 2 if program.between else taken


def rounds(
    programs: Sequence[Program],
    samples: int,
    sample_time: float,
    seed: int = 0,
    passes: Mapping[str, int] | None = None,
    watch: Callable[[], Disturbed] = lambda: Disturbed(0.0, 0),
) -> Iterator[Sample]:
    """`samples` rounds over all programs, with about `sample_time` seconds a sample; or with the
    given `passes`, however long they take. `watch` tells what has disturbed the teams so far.
    """
    shuffled, walk, fixed = random.Random(seed), Walk(), passes or {}
    found = None if passes else Passes(flat(programs), sample_time, walk)
    now = watch()
    for number in range(samples):
        off, due = list[str](), [program for program in programs if number % program.every == 0]
        for program in flat(sorted(shuffled.sample(due, len(due)), key=attrgetter("place"))):
            count, meant = found.each[program.name] if found else (fixed[program.name], 0.0)
            times = program.timed(*walk.on(program, count), count)
            then, now = now, watch()
            disturbed = now.since(then)
            sample = Sample(
                program=program.name,
                round=number,
                passes=count,
                seconds=times.seconds,
                pass_seconds=times.pass_seconds,
                skew=max(times.thread_seconds)
                * len(times.thread_seconds)
                / sum(times.thread_seconds)
                - 1.0,
                switches=times.switches,
                faults=times.faults,
                steal=disturbed.steal,
                throttled=disturbed.throttled,
                sample_time=meant,
                shares=times.stage_share if any(times.stage_share) else (),
                load=program.load.gbps(times) if program.load else 0.0,
                latency=program.latency(times),
            )
            if sample.off:
                off.append(sample.program)
            yield sample
            del sample, times
        if found and off and number + 1 < samples:
            found.again(off)
            now = watch()
