"""A line: our kernels and the peers of a point, in the same rounds on the same values. Points that
differ from it only in the queries of a step belong to it.

make each peer's process and verify it, as many at once as there are CPUs; a peer that fails gets an
error, and the others go on
for round in rounds:
    ours; the peers and the witnesses, shuffled; the first of ours again
verify all once more, with other queries too
a record for each, with the witnesses of these rounds
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from kvbench.closing import Owner
from kvbench.errors import KvbenchError
from kvbench.machine.allowance import Disturbed
from kvbench.model import AGAIN, OURS, Job, Point, Record, Sample
from kvbench.model.point import Visited
from kvbench.model.program import beside
from kvbench.peers.builds import build_of
from kvbench.peers.process import Failed
from kvbench.plan.witnesses import line_of
from kvbench.worker.answers import Answers
from kvbench.worker.content import SEED
from kvbench.worker.decoding import Decoding
from kvbench.worker.guest import Guest, asked, values
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room
from kvbench.worker.tuning import Tuner

_FIRST, _LAST = -1, 1  # places in a round


class Line(Owner):
    """A line on the bench. `points`: those of one of peer_lines(). Guests are made in `records`,
    which tells whose turn it is.
    """

    def __init__(
        self,
        points: Sequence[Point],
        room: Room,
        answers: Answers,
        tuner: Tuner,
        job: Job,
        seed: int,
    ) -> None:
        self._points, self._room, self._how = points, room, (answers, seed)
        self._tuner, self._job, self._seed = tuner, job, seed
        super().__init__()

    def _prepare(self) -> None:
        ours = [point for point in self._points if point.engine == OURS]
        bases = sorted(set(map(line_of, self._points)), key=lambda base: base.shape.q_len)
        made = {
            point: self._owned.enter_context(
                Decoding(
                    point, self._job.needs.get(point.name, self._room.needs), self._room, *self._how
                )
            )
            for point in dict.fromkeys([*bases, *ours])
        }
        for bench in made.values():
            self._tuner.choose(bench)
        self._benches = {point: made[point] for point in ours}
        self._bases = {base: made[base] for base in bases}
        self._first = made[bases[0]]
        self._guests: list[Guest] = []

    def records(self, watch: Callable[[], Disturbed]) -> Iterator[Visited | Record]:
        """Yield a point when its guest is begun, and a record of every point."""
        yield from self._invite()
        yield from self._all(Guest.idle)
        errors = {point: bench.verify() for point, bench in self._benches.items()}
        taken = yield from self._sampled(watch)
        for point, bench in self._benches.items():
            least = min(sample.passes for sample in taken if sample.program == point.name)
            errors[point] = max(errors[point], bench.verify_left(least))
        self._ask(SEED + 1)
        others = {bench: asked(bench) for bench in self._bases.values()}
        self._ask(SEED)
        yield from self._all(lambda guest: guest.after(others[guest.bench]))
        self._ask(SEED + 1)
        yield from self._all(lambda guest: guest.check([0]))
        self._ask(SEED)
        for point, bench in self._benches.items():
            yield self._ours(point, bench, taken, max(errors[point], bench.verify_changed()))
        for guest in self._guests:
            yield self._theirs(guest, taken)

    def _ask(self, seed: int) -> None:
        for bench in self._bases.values():
            bench.queries.ask(seed)

    # ---- guests ----------------------------------------------------------------------------------

    def _invite(self) -> Iterator[Visited | Record]:
        """Make the guests, in threads that stay: the system ends a process with the thread that
        started it.
        """
        pool = self._owned.enter_context(ThreadPoolExecutor(self._first.team.threads))
        data = self._owned.enter_context(values(self._room, self._first.team.threads))
        made = {}
        for bench in self._bases.values():
            bench.queries.right()  # computed once, before several ask for it
        for point in self._points:
            if point.engine != OURS:
                made[point] = pool.submit(self._guest, point, data)
        for point, guest in made.items():
            yield point
            try:
                self._guests.append(self._owned.enter_context(guest.result()))
            except KvbenchError as error:
                yield self._lost(point, error)

    def _guest(self, point: Point, data: int) -> Guest:
        plan = self._job.plan
        build = build_of(point.engine, plan.peers, plan.pythons)
        bench, patience = self._bases[line_of(point)], plan.patience / 2
        return Guest(point, bench, data, build, patience, self._job.references)

    def _lost(self, point: Point, error: KvbenchError) -> Record:
        return Record(self._job.launch, point, (), {}, {}, error=str(error))

    def _all(self, call: Callable[[Guest], None]) -> Iterator[Visited | Record]:
        """Call it for all guests. A guest that fails leaves."""
        for guest in list(self._guests):
            yield guest.point
            try:
                call(guest)
            except KvbenchError as error:
                yield self._leave(guest, error)

    def _leave(self, guest: Guest, error: KvbenchError) -> Record:
        self._guests.remove(guest)
        guest.close()
        return self._lost(guest.point, error)

    # ---- samples ---------------------------------------------------------------------------------

    def _sampled(
        self, watch: Callable[[], Disturbed]
    ) -> Generator[Visited | Record, None, list[Sample]]:
        """Take the samples. If a guest fails meanwhile, all others are sampled anew."""
        plan = self._job.plan
        while True:
            try:
                return [
                    replace(sample, pass_seconds=())
                    for sample in rounds(
                        self._programs(), plan.samples, plan.sample_time, self._seed, watch=watch
                    )
                ]
            except Failed as failure:
                yield self._leave(
                    next(g for g in self._guests if g.host.process is failure.process), failure
                )

    def _programs(self) -> list[Program]:
        named = {
            point: replace(bench.own, name=point.name, place=_FIRST)
            for point, bench in self._benches.items()
        }
        cores = [
            replace(each, name=beside(each.name, point.name))
            for point, bench in self._benches.items()
            for each in bench.cores
        ]
        again = [
            replace(each, name=AGAIN, like=each.name, place=_LAST) for each in [*named.values()][:1]
        ]
        peers = [replace(g.program, sample_time=self._job.plan.sample_time) for g in self._guests]
        return [*named.values(), *self._shared(), *cores, *peers, *again]

    def _shared(self) -> list[Program]:
        first = self._first
        return [*first.twins, *([first.memory] if first.from_memory else []), first.pace]

    def _ours(self, point: Point, bench: Decoding, taken: Sequence[Sample], error: float) -> Record:
        names = {
            point.name: "point",
            **{beside(each.name, point.name): each.name for each in bench.cores},
            **({AGAIN: AGAIN} if point == next(iter(self._benches)) else {}),
        }
        own = bench.own.traffic()
        moved = {"point": own, AGAIN: own} | {each.name: each.traffic() for each in bench.cores}
        facts = {"core_level": bench.core_level, "ran": bench.ran, "max_abs_err": error}
        return self._record(point, names, moved, taken, **facts)

    def _theirs(self, guest: Guest, taken: Sequence[Sample]) -> Record:
        names = {guest.point.name: "point"}
        facts = {"memory": guest.memory, "overhead": guest.overhead, "slice_bytes": guest.bytes}
        facts["max_abs_err"] = guest.error
        facts |= {"function": guest.function, "flags": guest.flags}
        return self._record(guest.point, names, {"point": guest.moved}, taken, **facts)

    def _record(
        self,
        point: Point,
        names: dict[str, str],
        moved: Mapping[str, Any],
        taken: Sequence[Sample],
        **facts: Any,
    ) -> Record:
        """Make a record. names: of its own programs, in rounds and in records."""
        facts = self._room.facts(point, moved["point"]) | facts
        names = {**names, **{program.name: program.name for program in self._shared()}}
        samples = tuple(replace(s, program=names[s.program]) for s in taken if s.program in names)
        there = {sample.program for sample in samples}
        moved = {**moved, **{program.name: program.traffic() for program in self._shared()}}
        return Record(
            self._job.launch,
            point,
            samples,
            {name: own for name, own in moved.items() if name in there},
            **facts,
        )
