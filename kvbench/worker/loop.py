"""The timed loop. In a round every program is sampled once, in an order drawn anew, so that drift meets all alike.

for round in rounds:
    for program in shuffled(programs):
        one untimed pass            # its own data into the caches, its threads awake
        timed: `passes` passes      # round robin over the program's tasks (layers)
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from kvbench.model import Sample, Traffic
from kvbench.native import Task, Team


@dataclass(frozen=True, slots=True)
class Program:
    """Tasks that a sample walks round robin, always whole rounds of them. `between` runs untimed before each pass."""

    name: str
    tasks: tuple[Task, ...]
    between: Task | None = None

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


def rounds(team: Team, programs: Sequence[Program], samples: int, seconds: float, seed: int = 0) -> Iterator[Sample]:
    """`samples` rounds over all programs, about `seconds` for each sample."""
    shuffled = random.Random(seed)
    passes = {program.name: passes_for(team, program, seconds) for program in programs}
    for number in range(samples):
        for program in shuffled.sample(programs, len(programs)):
            team.run(program.tasks[-1])
            times = team.run(*program.tasks, passes=passes[program.name], between=program.between)
            yield Sample(
                program=program.name,
                round=number,
                passes=passes[program.name],
                seconds=times.seconds,
                pass_seconds=times.pass_seconds,
                thread_seconds=times.thread_seconds,
                switches=times.switches,
                faults=times.faults,
            )
