"""The timed loop. In a round every program is sampled once, in an order drawn anew, so that drift meets all alike.

for round in rounds:
    for program in shuffled(programs):
        one untimed pass            # its own data into the caches, unless no cache keeps them
        timed: `passes` passes      # round robin over the program's tasks (layers)
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
    """Tasks that a sample walks round robin, always whole rounds of them. `between` runs untimed before each pass.

    warm: an untimed pass comes before each sample, and brings its data into the caches. Not where none would keep them.
    """

    name: str
    tasks: tuple[Task, ...]
    between: Task | None = None
    warm: bool = True

    def traffic(self) -> Traffic:
        return self.tasks[0].traffic()


def passes_for(team: Team, program: Program, seconds: float) -> int:
    """Passes that take about `seconds`; twice that by the wall, where most of it goes into what lies between them."""
    passes = len(program.tasks)
    while True:
        start = perf_counter()
        taken = team.run(*program.tasks, passes=passes, between=program.between).seconds
        if program.between:
            taken = (perf_counter() - start) / 2
        if taken >= seconds / 4 or passes >= 1 << 24:
            rounds = math.ceil(seconds / max(taken, 1e-9) * passes / len(program.tasks))
            return max(1, rounds) * len(program.tasks)
        passes *= max(2, min(16, int(seconds / 2 / max(taken, 1e-9))))


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
    shuffled = random.Random(seed)
    known = passes or {}
    counts = {p.name: known.get(p.name) or passes_for(team, p, seconds) for p in programs}
    now = watch()
    for number in range(samples):
        for program in shuffled.sample(programs, len(programs)):
            if program.warm:
                team.run(program.tasks[-1])
            times = team.run(*program.tasks, passes=counts[program.name], between=program.between)
            before, now = now, watch()
            disturbed = now.since(before)
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
