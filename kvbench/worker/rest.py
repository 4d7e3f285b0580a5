"""Another engine and smaller calls of it, which tell where the rest of its time goes.

for call in calls:
    make its process, and verify it
for round in rounds:
    all calls, plain reads of memory by all threads and by one, shuffled; idle processes are stopped
verify each once more, with other queries too
"""

from dataclasses import replace

from kvbench.closing import Owner
from kvbench.errors import OutOfMemory, WrongAnswer
from kvbench.leftovers import scratch
from kvbench.machine import available_memory, describe
from kvbench.model import Machine, Point, Record
from kvbench.model.calls import ALL, READ, READ_ONE, Calls
from kvbench.native import default_library
from kvbench.peers.builds import Build
from kvbench.peers.process import Failed
from kvbench.plan.needs import PROCESS, needs
from kvbench.plan.witnesses import line_of, value_bytes
from kvbench.regime import far_bytes
from kvbench.units import size
from kvbench.worker.answers import Answers
from kvbench.worker.decoding import Decoding
from kvbench.worker.ground import Ground
from kvbench.worker.guest import Guest, look_after, values
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room

PATIENCE = 60.0  # seconds without a sign of life after which an engine counts as hung


def visit_rest(
    calls: Calls, build: Build, samples: int, sample_time: float, patience: float | None = None
) -> Record:
    """Visit an engine's calls. The programs are the calls, READ and READ_ONE."""
    machine = describe()
    _refuse_too_large(calls, machine)
    try:
        with (
            scratch() as folder,
            _Apart(calls, build, machine, patience or PATIENCE, folder) as apart,
        ):
            return apart.record(samples, sample_time)
    except Failed as failure:
        raise WrongAnswer(failure.args[0], "try another build, or another --context") from None


def _refuse_too_large(calls: Calls, machine: Machine) -> None:
    """Refuse calls that do not fit memory: each process has its own store, made of the shared
    values.
    """
    wanted, free = 0, available_memory()
    for point in calls.points.values():
        needed = needs(line_of(point), far_bytes(machine, point.cpus))
        wanted += needed.arena + 2 * value_bytes(point.shape) + PROCESS
        if point == calls.points[ALL]:
            wanted += needed.memory
    if wanted > free:
        raise OutOfMemory(
            f"the engine's calls need {size(wanted)} of memory, {size(free)} are free",
            "less context",
        )


class _Apart(Owner):
    """The processes of an engine's calls. `_guests`: by program, each with the bench that knows the
    right answer.
    """

    def __init__(
        self, calls: Calls, build: Build, machine: Machine, patience: float, folder: str
    ) -> None:
        self._calls, self._how, self._machine = calls, (build, patience, folder), machine
        super().__init__()

    def _prepare(self) -> None:
        self._benches = dict[Point, tuple[Decoding, int]]()
        self._guests = dict[str, tuple[Guest, Decoding]]()
        for name, point in self._calls.points.items():
            bench, data = self._beside(point)
            how = bench, data, *self._how
            self._guests[name] = self._owned.enter_context(Guest(point, *how)), bench

    def _beside(self, point: Point) -> tuple[Decoding, int]:
        """Our bench with the same values, and a file with the values. Calls with one thread share
        both with those of all threads.
        """
        base = replace(line_of(point), cpus=self._calls.points[ALL].cpus)
        if base not in self._benches:
            needed = needs(base, far_bytes(self._machine, base.cpus))
            ground = self._owned.enter_context(Ground(default_library(), self._machine))
            room = self._owned.enter_context(Room(base, needed, ground))
            bench = self._owned.enter_context(Decoding(base, needed, room, Answers()))
            data = self._owned.enter_context(values(room, base.threads))
            self._benches[base] = bench, data
        return self._benches[base]

    def record(self, samples: int, sample_time: float) -> Record:
        programs = self._programs(sample_time)
        taken = tuple(rounds(programs, samples, sample_time))
        for bench, _ in self._benches.values():
            look_after([guest for guest, own in self._guests.values() if own is bench], bench)
        guest, bench = self._guests[ALL]
        facts = bench.room.facts(guest.point, guest.moved) | {"memory": guest.memory}
        return Record(
            launch=0,
            point=guest.point,
            samples=taken,
            traffic={each.name: each.traffic() for each in programs},
            max_abs_err=max(guest.error for guest, _ in self._guests.values()),
            function=guest.function,
            flags=guest.flags,
            core_level=self._calls.level,
            **facts,
        )

    def _programs(self, sample_time: float) -> list[Program]:
        """The calls and plain reads as programs, each with samples as long as asked for."""
        bench = self._guests[ALL][1]
        reads = [replace(bench.memory, name=READ)]
        if bench.team.threads > 1:
            reads.append(replace(bench.memory_by(bench.point.cpus[:1]), name=READ_ONE))
        calls = [replace(guest.program, name=name) for name, (guest, _) in self._guests.items()]
        return [replace(each, quiet=True, sample_time=sample_time) for each in (*calls, *reads)]
