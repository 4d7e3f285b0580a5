"""The course of a sweep.

begin or resume:  suite, machine -> plan -> manifest, preflight
records:          each record is on disk before the next visit begins
finish:           rebuild the files that others read from the journal
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from kvbench import runner
from kvbench.analysis.differs.questions import open_questions
from kvbench.analysis.measured.estimates import Estimate, enough
from kvbench.analysis.measured.machines import ceiling_rows, profile
from kvbench.analysis.measured.rates import by_launch
from kvbench.analysis.measured.results import results
from kvbench.closing import Closing
from kvbench.errors import BadArgument
from kvbench.machine import available_memory, describe
from kvbench.machine.preflight import preflight
from kvbench.machine.tree import Files
from kvbench.model import (
    Check,
    Contrast,
    Job,
    Machine,
    Needs,
    Plan,
    Point,
    Record,
)
from kvbench.model.contrast import NoLine
from kvbench.model.point import Visited
from kvbench.peers.builds import build_of
from kvbench.peers.known import Known, known
from kvbench.plan import (
    needs_here,
    told,
    visits,
)
from kvbench.plan.witnesses import is_peer
from kvbench.results import Run
from kvbench.runner import Budget, Execute, new_run, run
from kvbench.session.identity import build, committed, engines, identity, refuse_changed, versions
from kvbench.session.line import chosen
from kvbench.session.options import Options
from kvbench.session.planning import evidence_of, kept_forecast, planned, schedules_of
from kvbench.store import Manifest, RunDirectory, plain
from kvbench.store.manifest import MOST_LAUNCHES
from kvbench.texts import printable
from kvbench.units import now


class Session(Closing):
    """The part of a run that one process does. It owns the run directory. `done`: earlier
    records.
    """

    def __init__(
        self,
        directory: RunDirectory,
        options: Options,
        machine: Machine,
        needs: Mapping[Point, Needs],
        checks: tuple[Check, ...],
        execute: Execute | None,
        remark: str = "",
    ) -> None:
        """Called by begin() and resume(). remark: a message for the user."""
        self.directory, self.options, self.machine = directory, options, machine
        self.needs, self.checks = needs, checks
        self.done = tuple(directory.records)
        self._execute, self.remark = execute, remark
        self.budget = Budget(options.budget or math.inf)
        self.added = 0.0  # seconds that the visits of added launches may take

    @classmethod
    def begin(
        cls,
        options: Options,
        out: Path | str | None = None,
        command: str = "kvbench.sweep()",
        execute: Execute | None = None,
    ) -> Self:
        """Start a run. By default `out` is a new folder below runs/. `command`: how the run was
        started.
        """
        library = options.kernels
        sweep, seen, machine = planned(options, library)
        options = options.settled(sweep.suite)
        tuning, remark = schedules_of(options, sweep, machine)
        plan = replace(sweep.plan, run=new_run(), tuning=tuning)
        peers = _peers(plan)
        manifest = Manifest(
            run=plan.run,
            created=now(),
            suite=sweep.suite.name,
            question=sweep.suite.question,
            models=sweep.models,
            plan=plan,
            skips=sweep.skips,
            options=asdict(options),
            identity=identity(sweep.suite, library, machine, peers),
            versions=versions(library, machine, peers) | committed(options.commit),
            command=printable(command),
            engines=engines(library, peers),
            forecast=kept_forecast(seen),
        )
        checks = _checks(plan, machine)  # this takes time, so no directory is made before
        directory = RunDirectory.create(
            Path(out) if out else Path("runs", f"{sweep.suite.name}-{plan.run}"), manifest
        )
        return cls(directory, options, machine, sweep.needs, checks, execute, remark)

    @classmethod
    def resume(
        cls, out: Path | str, asked: dict[str, Any] | None = None, execute: Execute | None = None
    ) -> Self:
        """Resume a run. `asked`: options given again. They must equal the run's own, except those
        that say how long it goes on.
        """
        directory = RunDirectory.open(out, write=True)
        try:
            source, machine = str(directory.path), describe()
            options = Options.kept(directory.manifest.options, source).resumed(asked or {}, source)
            plan = directory.manifest.plan
            peers, needs = _peers(plan), needs_here(plan.points, machine)
            found = identity(options.asked_suite, options.kernels, machine, peers)
            refuse_changed(directory.manifest.identity, found, source)
            _renew(directory, options)
            return cls(directory, options, machine, needs, _checks(plan, machine), execute)
        except BaseException:
            directory.close()
            raise

    def close(self) -> None:
        self.directory.close()

    # ---- measuring -------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Measure what is left. Each record is on disk before it is yielded."""
        self._write_machine()
        what = self.directory.manifest.plan, self.machine, self.needs
        for found in run(*what, self._unchanged, self.done, self._more, self.budget):
            self.directory.append(found)
            yield found

    def _unchanged(self, job: Job) -> Iterator[Record]:
        """Check before each process that the library is still the one that the run began with."""
        kept, peers = self.directory.manifest.identity, _peers(self.directory.manifest.plan)
        refuse_changed(
            kept, kept | {"build": build(self.options.kernels, peers)}, str(self.directory.path)
        )
        return (self._execute or runner.launch)(job)

    def finish(self) -> bool:
        """Rebuild the files that others read, and keep what was seen of schedules for later runs.
        Returns False if no launch is complete yet.
        """
        self._write_machine()
        self.remark = ""
        tunings = [
            tuned for record in self.directory.records[len(self.done) :] for tuned in record.tuned
        ]
        if tunings and (evidence := evidence_of(self.options, self.machine)):
            self.remark = evidence.add(tunings)
        self.directory.summarize(results(self.directory.records))
        return self.directory.export()

    def run(self) -> Run:
        """The run as measured so far."""
        directory = self.directory
        return Run(
            directory.path, directory.manifest, self.machine, tuple(directory.records), self.checks
        )

    def _write_machine(self) -> None:
        found = replace(
            profile(self.machine, self.checks),
            ceilings=ceiling_rows(self.directory.records, self.machine),
        )
        self.directory.write_machine(plain(found))

    @cached_property
    def _weights(self) -> dict[str, float]:
        """Expected seconds of each visit of the plan, by name of the point."""
        plan = self.directory.manifest.plan
        return {point.name: seconds for point, seconds in visits(plan, self.needs).items()}

    @property
    def _line(self) -> float:
        """Expected seconds of a visit of the line."""
        manifest = self.directory.manifest
        return float(manifest.forecast.get("line", 0.0)) if manifest.has_line else 0.0

    def weight(self, visited: Visited) -> float:
        """Expected seconds of a visit."""
        return self._weights.get(visited.name, self._line)

    def _whole(self) -> float:
        """Seconds of all planned visits and of the line's."""
        return self.directory.manifest.plan.launches * math.fsum(
            (*self._weights.values(), self._line)
        )

    def left(self) -> float:
        """Seconds of the visits that had not been made when this process began."""
        manifest = self.directory.manifest
        made = (
            self.weight(record.point)
            for record in self.done
            if record.launch < manifest.plan.launches or record.point == manifest.line
        )
        return self._whole() - math.fsum(made)

    @property
    def forecast(self) -> str:
        """How long the run takes; for a resumed run, how long the rest takes."""
        manifest = self.directory.manifest
        whole = self._whole()
        left = self.left() / whole if whole else 1.0
        return told(left * manifest.forecast["seconds"], manifest.forecast.get("until", 0.0))

    def _more(self, number: int) -> tuple[Visited, ...]:
        """What launch `number` visits; empty if it should not start. A launch that has begun is
        finished. After the planned launches come the line's, equally many, and added ones.
        """
        if number >= self.directory.manifest.plan.launches:
            self._choose_line()
        records, manifest = self.directory.records, self.directory.manifest
        begun = max((record.launch for record in records), default=0)
        if begun < number >= manifest.most_launches:
            return ()
        if number < manifest.plan.launches:
            points = manifest.plan.points
            return points if number <= begun or self._in_time(points, self._asked) else ()
        if number < begun:
            names = {record.point.name for record in records if record.launch == number}
            return tuple(point for name, point in manifest.named().items() if name in names)
        lines = self._lines_left(number)
        line = (manifest.line,) if manifest.line and lines else ()
        if number > begun and line and not self._in_time(line, self._asked):
            return ()
        added = self._added(number, begun)
        ahead = (lines - len(line)) * self._line
        if number > begun and not self._in_time((*line, *added), self._until, ahead):
            added = ()
        if not lines:
            self.budget.seconds = self._until
        if number > begun:
            self.added += math.fsum(map(self.weight, added))
        return (*line, *added)

    def _choose_line(self) -> None:
        """Choose the line once, from the planned launches."""
        manifest = self.directory.manifest
        if manifest.line or manifest.no_line:
            return
        found: Contrast | NoLine = NoLine.ALONE
        if self.options.asked_suite.contrasts:
            what = self.directory.records, self.machine, manifest.models, self.needs
            found = chosen(manifest.plan, *what, available_memory())
        self.directory.rewrite(
            replace(manifest, no_line=found)
            if isinstance(found, NoLine)
            else replace(manifest, line=found)
        )

    def _lines_left(self, number: int) -> int:
        """Launches that have still to visit the line, including this one."""
        manifest = self.directory.manifest
        before = (record for record in self.directory.records if record.launch < number)
        made = sum(record.point == manifest.line for record in before)
        return max(0, manifest.plan.launches - made) if manifest.line else 0

    def _added(self, number: int, begun: int) -> tuple[Visited, ...]:
        """The visits beyond the plan in a launch."""
        manifest, target = self.directory.manifest, self.options.target_ci
        if target:  # fewer launches cannot tell how far off they are
            done = number > begun and enough(number) and self.reach() <= target
            return () if done or number >= MOST_LAUNCHES else manifest.plan.points
        return self._open(number) if number < manifest.looks else ()

    def _open(self, number: int) -> tuple[Visited, ...]:
        """The points of questions that earlier launches left open and twice the most launches can
        decide.
        """
        manifest = self.directory.manifest
        before = [record for record in self.directory.records if record.launch < number]
        left = open_questions(before, self.machine, manifest.looks)
        names = {name for each in left if each.needs <= 2 * manifest.looks for name in each.points}
        return tuple(point for point in manifest.plan.points if point.name in names)

    @property
    def _asked(self) -> float:
        """The run's budget in seconds."""
        return self.options.budget or math.inf

    @property
    def _until(self) -> float:
        """Seconds within which launches are added. The suite's limit holds for open questions
        only.
        """
        suites = self.options.asked_suite.until_decided if self.directory.manifest.looks else 0
        return self.options.budget or suites or math.inf

    def _in_time(self, points: tuple[Visited, ...], limit: float, ahead: float = 0.0) -> bool:
        """Whether visits of these points end within the limit, at the pace of this session and
        after `ahead` more seconds.
        """
        visits = self.directory.records[len(self.done) :]
        fresh = math.fsum(self.weight(visit.point) for visit in visits)
        ahead += math.fsum(map(self.weight, points))
        return not fresh or self.budget.used * (1 + ahead / fresh) <= limit

    def reach(self) -> float:
        """The largest distance from a point's median seconds to an end of its interval, as a share
        of the median.
        """
        found = (
            Estimate.of(list(seconds.values()))
            for seconds in by_launch(self.directory.records).values()
        )
        return max(
            (max(each.high - each.median, each.median - each.low) / each.median for each in found),
            default=0.0,
        )


def _renew(directory: RunDirectory, options: Options) -> None:
    """Write to the manifest what is asked now. Its forecast of time follows the launches."""
    manifest = directory.manifest
    own = (record.launch for record in directory.records if record.point != manifest.line)
    plan, begun = manifest.plan, 1 + max(own, default=-1)
    launches = options.launches or plan.launches
    longer = {"seconds": launches / plan.launches, "timed": launches / plan.launches}
    forecast = {name: value * longer.get(name, 1.0) for name, value in manifest.forecast.items()}
    changed = replace(plan, launches=launches, patience=options.patience or plan.patience)
    found = replace(manifest, plan=changed, options=asdict(options), forecast=forecast)
    if begun > (found.most_launches if launches == plan.launches else launches):
        raise BadArgument(
            f"launches is {launches}, but {directory.path} has already begun {begun}",
            "ask for that many, or more",
        )
    if found != manifest:
        directory.rewrite(found)


def sweep(
    suite: str = "quick",
    *,
    out: Path | str | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] = lambda record: None,
    **options: Any,
) -> Run:
    """Measure a suite into the run directory `out` and return the run. `options` are the fields of
    Options.
    """
    session = (
        Session.resume(out or "", options)
        if resume
        else Session.begin(Options(suite, **options), out)
    )
    with session:
        try:
            for record in session.records():
                progress(record)
        finally:
            session.finish()
        return session.run()


def _peers(plan: Plan) -> list[Known]:
    """The peers of a plan. Builds that the user asked for keep the user's order."""
    names = {point.engine for point in plan.points if is_peer(point)}
    asked = [*plan.peers]
    order = sorted(names, key=lambda name: (asked.index(name) if name in asked else -1, name))
    builds = ((name, build_of(name, plan.peers, plan.pythons)) for name in order)
    return [known(name, build.path, build.python) for name, build in builds]


def _checks(plan: Plan, machine: Machine) -> tuple[Check, ...]:
    """Run the preflight on the CPUs of the point with most threads."""
    cpus = max((point.cpus for point in plan.points), key=len, default=machine.allowed)
    return preflight(Files("/"), machine, cpus)
