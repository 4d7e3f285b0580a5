"""A visit of a point by two builds of another engine, each in its own process with its own store.

make both processes, started in an order that a coin decides; verify both
for pair in pairs:
    for side in base and head, in an order that a coin decides:
        one untimed step, then a timed sample of the side; the other process is stopped
        a plain read of memory beside it, by the installed library
verify both once more, with other queries too

Memory is placed anew in every visit of every launch, also that of the engine's code, so that its
place favours neither side. A control has base on both sides, in two processes: differences there
are noise.
"""

import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace

from kvbench.machine.allowance import Disturbed
from kvbench.model import BESIDE, SIDES, Job, Point, Record
from kvbench.peers.builds import AT, build_of
from kvbench.worker.answers import Answers
from kvbench.worker.decoding import Decoding
from kvbench.worker.guest import Guest, look_after, values
from kvbench.worker.loop import Program, flat, rounds
from kvbench.worker.room import Room


class Contest:
    """Visits by a plan's two builds: the words of its points with @base and @head."""

    def __init__(self, job: Job, coin: random.Random) -> None:
        self._job, self._coin = job, coin

    def visit(
        self, point: Point, room: Room, answers: Answers, watch: Callable[[], Disturbed]
    ) -> Record:
        """Visit a point. room: of the installed library, with the values that both sides get."""
        with ExitStack() as owned:
            seed = self._coin.randrange(1 << 32)
            bench = owned.enter_context(Decoding(room.point, room.needs, room, answers, seed))
            sides = self._guests(point, bench, owned)
            programs = self._programs(sides, bench)
            plan = self._job.plan
            taken = tuple(rounds(programs, plan.samples, plan.sample_time, seed, watch=watch))
            look_after(sides.values(), bench)
            base = sides["base"]
            traffic = {program.name: program.traffic() for program in flat(programs)}
            return Record(
                launch=self._job.launch,
                point=point,
                samples=taken,
                # builds may store different extra bytes beside rows; both answer the same question
                traffic=traffic | {"head": base.moved},
                max_abs_err=max(guest.error for guest in sides.values()),
                function=base.function,
                flags=base.flags,
                **room.facts(point, base.moved) | {"memory": base.memory},
            )

    def _guests(self, point: Point, bench: Decoding, owned: ExitStack) -> dict[str, Guest]:
        """Make both guests, in threads that stay: the system ends a process with the thread that
        started it.
        """
        pool = owned.enter_context(ThreadPoolExecutor(min(len(SIDES), bench.team.threads)))
        data = owned.enter_context(values(bench.room, bench.team.threads))
        bench.queries.right()  # computed once, before both ask for it
        made = {
            side: pool.submit(self._guest, point, side, bench, data, owned)
            for side in self._coin.sample(SIDES, 2)
        }
        wait(made.values())  # if one failed, the other must still be closed
        return {side: guest.result() for side, guest in made.items()}

    def _guest(
        self, point: Point, side: str, bench: Decoding, data: int, owned: ExitStack
    ) -> Guest:
        """Make a side's guest, named after the side. A control's head is base's build in a second
        process.
        """
        plan = self._job.plan
        own = "base" if point.name in plan.controls else side
        build = build_of(f"{point.engine}{AT}{own}", plan.peers, plan.pythons)
        named = replace(point, engine=f"{point.engine}{AT}{side}")
        how = data, build, plan.patience / 2, self._job.references
        guest = owned.enter_context(Guest(named, bench, *how))
        guest.place_code()
        return guest

    def _programs(self, sides: Mapping[str, Guest], bench: Decoding) -> list[Program]:
        """Programs of both sides: as many steps as base needs for a sample's time, and reads for
        half of it.
        """
        base, head = (replace(sides[side].program, name=side, quiet=True) for side in SIDES)
        half = self._job.plan.sample_time / 2
        beside = replace(bench.plainest, name=BESIDE["base"], quiet=True, sample_time=half)
        again = replace(beside, name=BESIDE["head"], like=beside.name)
        return [replace(base, then=(beside,)), replace(head, like=base.name, then=(again,))]
