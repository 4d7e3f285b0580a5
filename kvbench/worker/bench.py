"""A bench: the programs of one point in a room, and samples of them between two checks of its
answers. This is what decodes and stores have in common; decoding.py and storing.py have the rest,
foreign.py what plug-ins need.
"""

import random
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

from kvbench.closing import Owner
from kvbench.errors import WrongAnswer
from kvbench.machine.allowance import Disturbed
from kvbench.machine.placement import neighbours
from kvbench.model import PACE, PLAIN, Needs, Plan, Point, Role, Sample
from kvbench.model.program import ALONE
from kvbench.native import Load, Part, Task, forms, probe_task
from kvbench.regime import dram_bytes
from kvbench.worker.answers import Answers
from kvbench.worker.far import Far
from kvbench.worker.loop import Program, rounds
from kvbench.worker.probing import FORM_EVERY, ROUNDS
from kvbench.worker.room import Room

_PACE = 0.001  # seconds of a sample
PIECES = 16  # parts of the memory that no cache holds; a neighbour reads one after another
_AHEAD = 4  # parts read before a sample begins, so that caches are full of the neighbour's bytes


class Bench(Owner):
    """The programs of a point and its checks. `own`: the point as a program. `witnesses`: the
    programs that it is compared with. Both are made when first asked for, and live as long as the
    bench.
    """

    foreign = False  # whether the kernel is a plug-in's

    def __init__(
        self, point: Point, needed: Needs, room: Room, answers: Answers, seed: int = 0
    ) -> None:
        self.point, self.needs, self.room, self._answers = point, needed, room, answers
        self.team, self._seed, self._random = room.team(point.cpus), seed, random.Random(seed)
        self.ran = ""  # the schedule; the tuner may choose another
        self.far_schedule = ""  # schedule of copies in memory, if there are any; else the same
        self.far = Far(point, needed.far, room)
        super().__init__()

    def _prepare(self) -> None:
        least = dram_bytes(self.room.ground.machine, self.point.cpus) or self.far.bytes
        self.between = None
        if self.point.residency == "evicted":  # its reads evict the caches' contents
            self.between = self.probe("read", to=self.far.whole, size=self.far.whole.size)
        self._warm = self.between is None and self.needs.walked < least

    @property
    def core_level(self) -> str:
        """The cache that the core roof's data stays in; empty without a core roof."""
        return ""

    # ---- programs --------------------------------------------------------------------------------

    @property
    def programs(self) -> list[Program]:
        return [self.own, *self.witnesses, self.pace]

    @cached_property
    def own(self) -> Program:
        """The point's kernel, with all that is read between its passes."""
        return self.streamed(self.kernel)

    @property
    @abstractmethod
    def kernel(self) -> Program:
        """The point's kernel with nothing read between its passes, unless all passes are
        evicted.
        """

    @property
    def alone(self) -> list[Program]:
        """The kernel without what is read between passes, as a witness of a point that has such
        reads. A decode has another one.
        """
        return [replace(self.kernel, name=ALONE)] if self.point.streamed else []

    @property
    @abstractmethod
    def plainest(self) -> Program:
        """The witness that only reads, or copies."""

    @property
    @abstractmethod
    def witnesses(self) -> list[Program]:
        """The programs that every sample of the point is compared with."""

    def more(self) -> Iterator[Program]:
        """More programs for a visit in depth: read ceilings of the point's footprint."""
        if not self.foreign:  # a plug-in has them already
            yield from self.reads("ceiling", self.room.whole, self.between)

    def stages(self) -> tuple[float, ...]:
        """Shares of the kernel's stages; empty if it has no stages."""
        return ()

    def neighbour(self) -> Load | None:
        """A load that reads memory on all cores of the point's nodes that it leaves free; None if
        none is free.
        """
        if not (cpus := neighbours(self.room.ground.machine, self.point.cpus)):
            return None
        reads = self.far_reads(self.far.whole.size // PIECES // 64 * 64, PIECES, len(cpus))
        return Load(self.room.team(cpus), reads, _AHEAD)

    def far_reads(self, size: int, count: int, threads: int = 0) -> tuple[Task, ...]:
        """Reads of `count` consecutive pieces of memory that no cache holds."""
        arena = self.far.arena
        parts = (arena.part(place * size, size) for place in range(count))
        return tuple(self.probe("read", threads, to=part, size=size) for part in parts)

    def program(self, name: str, *tasks: Task) -> Program:
        return Program(name, self.team, tasks, self.between, self._warm)

    def streamed(self, program: Program) -> Program:
        """A program with as much memory read before each pass as the point asks for."""
        return replace(program, between=self._stream) if self.point.streamed else program

    @cached_property
    def _stream(self) -> Task:
        """Reads by the point's threads that go on where the last one stopped, so that no cache has
        the data.
        """
        far, piece = self.far.whole, self.point.streamed
        return self.probe("read", to=far, size=far.size, piece=piece)

    def probe(self, op: str, threads: int = 0, **facts: Any) -> Task:
        """A probe by the point's threads, or by `threads` others."""
        task = probe_task(
            self.room.library, op, threads or self.team.threads, isa=self.point.isa, **facts
        )
        return self._owned.enter_context(task)

    def reads(self, name: str, walked: Part, between: Task | None = None) -> list[Program]:
        """Reads of `walked` in all forms. A plug-in that beats all of them is suspect."""
        size, found = walked.size // 64 * 64, []
        for form, how in forms("read", self.room.library).items():
            every = 1 if form == PLAIN or self.foreign else FORM_EVERY
            task = self.probe("read", to=walked, size=size, **how)
            found.append(Program(Role(name, form).name, self.team, (task,), between, every=every))
        return found

    @cached_property
    def pace(self) -> Program:
        """The present speed of the cores, sampled in every round beside the point."""
        return Program(
            PACE, self.team, (self.probe("flops", steps=ROUNDS // 8),), sample_time=_PACE
        )

    # ---- samples between two looks ---------------------------------------------------------------

    def measured(
        self, programs: Sequence[Program], samples: int, sample_time: float, **how: Any
    ) -> tuple[tuple[Sample, ...], float]:
        """Take samples; also return the largest error of the kernel's answers before and after
        them. how: more arguments of rounds().
        """
        error = self.verified()
        taken = self.sampled(programs, samples, sample_time, **how)
        return taken, max(error, self.looked_after(programs, taken))

    def sampled(
        self, programs: Sequence[Program], samples: int, sample_time: float, **how: Any
    ) -> tuple[Sample, ...]:
        """Take samples. Their seconds of single passes, perhaps millions, are dropped at once,
        unless tails are wanted.
        """
        with watched([self]):
            return tuple(
                sample if sample.one_by_one else replace(sample, pass_seconds=())
                for sample in rounds(programs, samples, sample_time, self._seed, **how)
            )

    def looked_after(self, programs: Sequence[Program], taken: Sequence[Sample]) -> float:
        """The largest error that samples of these programs left behind, and of answers to other
        queries afterwards.
        """
        own = min(sample.passes for sample in taken if sample.program == self.own.name)
        error = max(self.verify_beside(programs), self.verify_left(own))
        error = max(error, self.verify_changed())
        self.refuse_impossible(taken)
        return error

    @abstractmethod
    def verify(self) -> float:
        """Run the kernel, and return its largest error."""

    def verified(self) -> float:
        """verify(), and for a plug-in also the checks after samples."""
        return self.verify()

    def verify_beside(self, programs: Sequence[Program]) -> float:
        """The largest error that samples of other programs left behind."""
        return 0.0

    @abstractmethod
    def verify_left(self, passes: int) -> float:
        """The largest error of what the last `passes` passes left behind, or of more."""

    def verify_changed(self) -> float:
        """The largest error with other queries."""
        return 0.0

    def unwritten(self) -> AbstractContextManager[None]:
        """Check, around the kernel's samples, that its inputs do not change."""
        return nullcontext()

    def on_given_threads(self) -> AbstractContextManager[None]:
        """Check, around the kernel's samples, that it runs on the given threads only."""
        return nullcontext()

    def refuse_impossible(self, taken: Sequence[Sample]) -> None:
        """Refuse times that our own kernels cannot reach."""

    def wrong(self, what: str) -> WrongAnswer:
        return WrongAnswer(
            f"{self.point.kernel} {what}",
            "run kvbench verify, and report its output as a bug of kvbench",
        )


@contextmanager
def watched(benches: Collection[Bench]) -> Iterator[None]:
    """Watch plug-ins around samples. Our own threads digest the kernels' inputs and end before, so
    that none is counted with a kernel's.
    """
    with ExitStack() as looks:
        for bench in benches:
            looks.enter_context(bench.unwritten())
        for bench in benches:
            looks.enter_context(bench.on_given_threads())
        yield


def side_by_side(
    benches: Mapping[str, Bench],
    programs: Sequence[Program],
    plan: Plan,
    seed: int,
    watch: Callable[[], Disturbed],
) -> tuple[tuple[Sample, ...], dict[str, float]]:
    """Sample one program of each bench, named as the bench; and return for each bench the largest
    error of its kernel's answers before and after. Seconds of single passes are dropped.
    """
    errors = {name: bench.verified() for name, bench in benches.items()}
    with watched(benches.values()):
        taken = tuple(
            sample if len(sample.pass_seconds) == 1 else replace(sample, pass_seconds=())
            for sample in rounds(programs, plan.samples, plan.sample_time, seed, watch=watch)
        )
    for name, bench in benches.items():
        passes = min(sample.passes for sample in taken if sample.program == name)
        errors[name] = max(errors[name], bench.verify_left(passes))
    for name, bench in benches.items():
        errors[name] = max(errors[name], bench.verify_changed())
    return taken, errors
