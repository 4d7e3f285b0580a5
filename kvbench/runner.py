"""Run a plan: one fresh process for each launch, records as they come. The caller keeps the
records.

for each launch:
    while points are left:
        for record in a process that visits them, or only a plug-in's: yield it
        if it died: an error record of the point it was at, and another process for the rest
        if the budget is spent: the process is ended, and nothing more is visited
"""

import math
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import IO

from kvbench.apart import Ear, ending, kill_group
from kvbench.leftovers import scratch
from kvbench.model import Job, Machine, Needs, Plan, Point, Record
from kvbench.model.point import Visited
from kvbench.plan.needs import members
from kvbench.store.values import decoder, line, plain, refuse_unfit

Execute = Callable[[Job], Iterator[Record]]
_GOODBYE = 2.0  # seconds from the end of its output to its own
# NumPy's threads would stay awake.
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


class Budget:
    """Seconds that measuring may take, from the first process on; by default without limit. It may
    serve several runs.

    No visit begins after it. A visit that has begun may end, but is cut off at GRACE times the
    seconds.
    """

    GRACE = 1.2

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self._began: float | None = None
        self.spent = False  # whether it has stopped anything

    def begin(self) -> None:
        if self._began is None:
            self._began = time.monotonic()

    @property
    def used(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def left(self) -> float:
        return self.seconds - self.used

    @property
    def until(self) -> float | None:
        """When a process is cut off, for Job; None without a limit."""
        if self._began is None or math.isinf(self.seconds):
            return None
        return self._began + self.GRACE * self.seconds

    def ends(self) -> bool:
        """Whether the budget is spent. Called while points are left to visit."""
        self.spent = self.spent or self.left <= 0
        return self.spent


class Killed(Exception):
    """A process was killed from outside: at this point, or before any."""

    def __init__(self, point: Visited | None) -> None:
        super().__init__()
        self.point = point


def run(
    plan: Plan,
    machine: Machine,
    needs: Mapping[Point, Needs],
    execute: Execute | None = None,
    done: Iterable[Record] = (),
    more: Callable[[int], Collection[Visited]] | None = None,
    budget: Budget | None = None,
) -> Iterator[Record]:
    """Visit every point once in every launch, except those in `done`, while the budget lasts.

    `more` tells before each launch what it visits; if that is nothing, the run ends. By default all
    planned launches visit all points. `needs`: of the points. `execute` does a job; tests give one
    that replays recorded times. A point that failed is not tried again, unless memory was short.
    """
    budget = budget or Budget()
    with scratch() as references:
        job = Job(plan, 0, 0, (), machine, {}, references)
        progress = _Progress(job, needs, done, budget)
        ask = more or (lambda number: plan.points if number < plan.launches else ())
        for number, points in enumerate(takewhile(bool, map(ask, count()))):
            for found in progress.launch(number, points, execute or launch):
                yield replace(found, run=plan.run)
            if budget.spent:
                return


def new_run() -> str:
    """A name that sorts by time; two runs in the same second differ."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


class _Progress:
    """What is known of a run so far."""

    def __init__(
        self, job: Job, needs: Mapping[Point, Needs], done: Iterable[Record], budget: Budget
    ) -> None:
        """job: what all jobs have in common."""
        self._job, self._plan, self._needs, self._budget = job, job.plan, needs, budget
        self._visited: set[tuple[int, str]] = set()
        self._parts: dict[int, int] = {}
        self._failed: dict[str, str] = {}
        self._chosen = dict(job.plan.chosen)
        for found in done:
            self._note(found)

    def _note(self, found: Record) -> None:
        name = found.point.name
        self._visited.add((found.launch, name))
        self._parts[found.launch] = max(self._parts.get(found.launch, 0), found.part + 1)
        if found.error and not found.short:
            self._failed.setdefault(name, f"given up after launch {found.launch}: {found.error}")
        for tuned in found.tuned:
            self._chosen.setdefault(tuned.of, tuned.choice.preset)

    def launch(
        self, number: int, points: Collection[Visited], execute: Execute
    ) -> Iterator[Record]:
        killed: set[Visited | None] = set()
        self._budget.begin()
        while (left := self._next(number, points)) and not self._budget.ends():
            plan = (
                self._plan
                if self._plan.is_foreign(left[0])
                else replace(self._plan, plugin=(), against_plugin=())
            )
            plan = replace(plan, chosen=dict(self._chosen))
            todo = tuple(point for point in left if point.name not in self._failed)
            job = self._part(plan, number, todo)
            try:
                for found in self._all(job, left, execute):
                    self._note(found)
                    yield found
            except Killed as death:  # by somebody, or for want of memory: once may be bad luck
                if death.point in killed:
                    error = (
                        "its process was killed twice (see whether memory ran out: dmesg | tail)"
                    )
                    for point in [death.point] if death.point else left:
                        found = _failure(job, point, error)
                        self._note(found)
                        yield found
                killed.add(death.point)

    def _part(self, plan: Plan, number: int, points: Sequence[Visited]) -> Job:
        """The job of the next process of a launch."""
        part = self._parts.get(number, 0)
        self._parts[number] = part + 1
        own = {point.name: self._needs[point] for each in points for point in members(each)}
        return replace(
            self._job,
            plan=plan,
            launch=number,
            part=part,
            points=tuple(points),
            needs=own,
            until=self._budget.until,
        )

    def _next(self, number: int, points: Collection[Visited]) -> Sequence[Visited]:
        """The points that one process visits. A plug-in's points have their own process, which
        comes first in every other launch. With several plug-ins, each variant has a process, in
        alternating order.
        """
        left = [point for point in points if (number, point.name) not in self._visited]
        ours = [point for point in left if not self._plan.is_foreign(point)]
        theirs = list(filter(self._plan.is_foreign, left))
        if theirs and len(self._plan.plugin) > 1:
            variants = list(dict.fromkeys(point.variant for point in theirs))
            chosen = variants[-1] if number // 2 % 2 else variants[0]
            theirs = [point for point in theirs if point.variant == chosen]
        return (theirs or ours) if number % 2 else (ours or theirs)

    def _all(self, job: Job, left: Sequence[Visited], execute: Execute) -> Iterator[Record]:
        for point in left:
            if error := self._failed.get(point.name):
                yield _failure(job, point, error)
        missing = dict.fromkeys(job.points)
        for found in execute(job) if missing else ():
            missing.pop(found.point, None)
            yield found
            if missing and self._budget.ends():
                return
        if missing and self._budget.ends():
            return
        if len(missing) == len(job.points):  # no point was visited, nor would it be the next time
            yield from (_failure(job, point, "the launch ended without it") for point in missing)


def _failure(job: Job, point: Visited, error: str) -> Record:
    return Record(job.launch, point, (), {}, {}, error=error, part=job.part, began=time.time())


# ---- one process ---------------------------------------------------------------------------------


def launch(job: Job, program: tuple[str, ...] = ("-m", "kvbench.worker")) -> Iterator[Record]:
    """The records of one process. If it dies: an error record for the point it was at, or for all
    points if it was at none.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as complaints:
        worker = _Worker(job, program, complaints)
        try:
            yield from worker.records()
        finally:
            worker.stop()
        yield from worker.failures()


@dataclass(frozen=True, slots=True)
class _Said:
    """A line from a worker: one of the two. Points are given by name."""

    visiting: Visited | None = None
    record: Record | None = None


class _Worker:
    """A process, what it last reported, and the points it still owes."""

    def __init__(self, job: Job, program: tuple[str, ...], complaints: IO[str]) -> None:
        self._job, self._complaints = job, complaints
        self._owed = {point.name: point for point in job.points}
        self._decode = decoder(_Said, self._owed)
        self._at: Visited | None = None
        self._fault, self._useful, self._cut = "", False, False
        self._until = math.inf if job.until is None else job.until
        self._process = subprocess.Popen(
            [sys.executable, "-P", *program],  # -P: do not import modules from the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, **_ONE_THREAD},
            start_new_session=True,  # Ctrl-C is ours to handle; all that it starts ends with it
        )
        assert self._process.stdin and self._process.stdout  # PIPE was given for both
        self._in, self._out = self._process.stdin, self._process.stdout
        self._ear = Ear(self._process)

    def records(self) -> Iterator[Record]:
        job = replace(self._job, plan=replace(self._job.plan, points=()))
        try:
            self._say(line(plain(job) | {"parent": os.getpid()}))
            for said in _lines(self._out.fileno(), self._ear, self._job.plan.patience, self._until):
                found = self._understood(said)
                if found is None:
                    text = said[:60].decode(errors="replace")
                    self._fault = f"the worker sent {text!r}, which is not a record of a point"
                    return
                self._at = None if isinstance(found, Record) else found
                if isinstance(found, Record):
                    self._useful = True
                    yield found
                    self._say("")
                if not self._owed:
                    return
            self._process.wait(_GOODBYE)
        except TimeoutError:
            if time.monotonic() >= self._until:
                self._cut = True
            elif self._process.poll() is None:  # else it has died, and nobody could hear it
                self._fault = f"no sign of life for {self._job.plan.patience:g} s: it hangs"
        except subprocess.TimeoutExpired:
            self._fault = "the worker closed its output"

    def _say(self, text: str) -> None:
        """Write in pieces that a ready pipe takes at once. Raises TimeoutError if time is up."""
        pipe, left, end = (
            self._in.fileno(),
            f"{text}\n".encode(),
            time.monotonic() + self._job.plan.patience,
        )
        with suppress(BrokenPipeError):  # it is dead; failures() says why
            while left:
                if not self._ear.ready(pipe, select.POLLOUT, end):
                    return
                left = left[os.write(pipe, left[: select.PIPE_BUF]) :]

    def _understood(self, text: bytes) -> Record | Visited | None:
        """The record in a line, or the point whose visit begins; None if the line is neither, or of
        a point that the process does not owe.
        """
        with suppress(ValueError, RecursionError):
            said = self._decode(text)
            if said.record is None:
                return said.visiting
            found = refuse_unfit(said.record)
            return found if self._owed.pop(found.point.name, None) == found.point else None
        return None

    def stop(self) -> None:
        """End the process and all that it has started. It has nothing more to do, or cannot be
        trusted to end by itself.
        """
        kill_group(self._process)
        self._ear.close()
        self._out.close()
        with suppress(BrokenPipeError):
            self._in.close()

    def failures(self) -> Iterator[Record]:
        if not self._owed or self._cut or self._useful and self._at is None and not self._fault:
            # all is done, or time is up; or it was at no point, and another process may do the rest
            return
        if not self._fault and self._process.returncode == -signal.SIGKILL:
            raise Killed(self._at)
        self._complaints.seek(0)
        last = "".join(self._complaints.read().strip().splitlines()[-1:]) or "it said nothing"
        error = self._fault or f"the worker {ending(self._process.returncode)}: {last}"
        for point in [self._at] if self._at else list(self._owed.values()):
            yield _failure(self._job, point, error)


def _lines(pipe: int, ear: Ear, patience: float, until: float) -> Iterator[bytes]:
    """Yield lines; sleep until one comes. Raises TimeoutError if no full line comes within
    `patience` seconds, or before `until`.
    """
    pending, end = b"", time.monotonic() + patience
    while True:
        if not ear.ready(pipe, select.POLLIN, min(end, until)) or not (
            got := os.read(pipe, 1 << 20)
        ):
            return
        *whole, pending = (pending + got).split(b"\n")
        yield from whole
        end = time.monotonic() + patience if whole else end
