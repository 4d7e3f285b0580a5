"""The course of a sweep.

begin or resume:  suite, machine -> plan -> manifest, preflight
records:          each is on the disk before the next visit begins
finish:           what others read, rebuilt from the journal
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from kvbench.errors import BadArgument, Refused
from kvbench.grouping import grouped
from kvbench.machine import available_memory, describe
from kvbench.machine.placement import neighbours
from kvbench.machine.preflight import preflight
from kvbench.machine.tree import Files
from kvbench.model import Check, Job, Machine, Needs, Plan, Point, Record, Tuned, several
from kvbench.model.point import Visited
from kvbench.native import Library
from kvbench.peers import Known, known
from kvbench.plan import (
    Forecast,
    Site,
    Sweep,
    expand,
    forecast,
    needs_here,
    refuse_too_large,
    told,
    visits,
)
from kvbench.plan.classes import classes
from kvbench.plan.expansion import refuse_empty, refuse_without_peer, refuse_without_plugin
from kvbench.plan.witnesses import is_peer
from kvbench.results import Run
from kvbench.runner import Budget, Execute, new_run, run
from kvbench.session.identity import build, committed, engines, identity, refuse_changed, versions
from kvbench.session.options import Options
from kvbench.store import Manifest, RunDirectory, plain
from kvbench.store.evidence import OFF, Evidence
from kvbench.texts import printable
from kvbench.units import now

_TUNED = 0.001  # seconds of a sample; a visit has one of the point, for it is none of the tuning
Follow = Callable[[Iterable[Record], int], Iterator[Record]]


class Session(Closing):
    """One process's part in a run. `done`: records there were before it. It owns the directory."""

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
        """As begin() and resume() call it. remark: a line for whoever asked for it."""
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
        """Without `out`, a folder of its own below runs/. `command`: how the run came about."""
        library = options.kernels
        sweep, seen, machine = planned(options, library)
        options = options.settled(sweep.suite)
        tuning, remark = _known(options, sweep, machine)
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
            forecast=_kept(seen),
        )
        checks = _checks(plan, machine)  # it takes its time, so there is no directory yet
        directory = RunDirectory.create(
            Path(out) if out else Path("runs", f"{sweep.suite.name}-{plan.run}"), manifest
        )
        return cls(directory, options, machine, sweep.needs, checks, execute, remark)

    @classmethod
    def resume(
        cls, out: Path | str, asked: dict[str, Any] | None = None, execute: Execute | None = None
    ) -> Self:
        """`asked`: options given anew. They must be those that the run began with, but for how long
        it goes on.
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
        """Measure what is left. Each record is kept before it is yielded."""
        self._write_machine()
        what = self.directory.manifest.plan, self.machine, self.needs
        for found in run(*what, self._unchanged, self.done, self._more, self.budget):
            self.directory.append(found)
            yield found

    def _unchanged(self, job: Job) -> Iterator[Record]:
        """A process opens the library anew: it must be the one that the run began with."""
        kept, peers = self.directory.manifest.identity, _peers(self.directory.manifest.plan)
        refuse_changed(
            kept, kept | {"build": build(self.options.kernels, peers)}, str(self.directory.path)
        )
        return (self._execute or runner.launch)(job)

    def finish(self) -> bool:
        """Rebuild what others read, and keep for later runs what was seen of schedules. False where
        no launch is complete yet.
        """
        self._write_machine()
        self.remark = ""
        tunings = [
            tuned for record in self.directory.records[len(self.done) :] for tuned in record.tuned
        ]
        if tunings and (evidence := _evidence(self.options, self.machine)):
            self.remark = evidence.add(tunings)
        self.directory.summarize(results(self.directory.records))
        return self.directory.export()

    def run(self) -> Run:
        """What there is so far."""
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
    def weights(self) -> dict[str, float]:
        """Seconds that each visit may take, by its point's name."""
        plan = self.directory.manifest.plan
        return {point.name: seconds for point, seconds in visits(plan, self.needs).items()}

    def left(self) -> float:
        """Seconds of the visits that were not made when it began."""
        weights, plan = self.weights, self.directory.manifest.plan
        made = [weights[record.point.name] for record in self.done if record.launch < plan.launches]
        return plan.launches * sum(weights.values()) - sum(made)

    @property
    def forecast(self) -> str:
        """How long it takes, before any of it is measured; where some was measured before, what is
        left.
        """
        manifest = self.directory.manifest
        whole = manifest.plan.launches * math.fsum(self.weights.values())
        left = self.left() / whole if whole else 1.0
        return told(left * manifest.forecast["seconds"], manifest.forecast.get("until", 0.0))

    def _more(self, number: int) -> tuple[Visited, ...]:
        """What launch `number` visits; nothing where it does not begin. One that has begun is
        finished.
        """
        records, manifest = self.directory.records, self.directory.manifest
        begun = max((record.launch for record in records), default=0)
        if begun < number >= manifest.most_launches:
            return ()
        points = manifest.plan.points
        if manifest.looks and number >= manifest.plan.launches:
            points = self._open(number, finished=number < begun)
        if number <= begun:
            return points
        # fewer launches say nothing of how far off they are
        sure = enough(number)
        target = self.options.target_ci
        if target and number >= manifest.plan.launches and sure and self.reach() <= target:
            return ()
        return points if self._in_time(number, points) else ()

    def _open(self, number: int, finished: bool) -> tuple[Visited, ...]:
        """What an added launch visits: the points of questions that the launches before it left
        open, if twice as many as there can be may decide them. Or what it has visited.
        """
        manifest, records = self.directory.manifest, self.directory.records
        if finished:
            names = {record.point.name for record in records if record.launch == number}
        else:
            before = [record for record in records if record.launch < number]
            left = open_questions(before, self.machine, manifest.looks)
            names = {
                name for each in left if each.needs <= 2 * manifest.looks for name in each.points
            }
        return tuple(point for point in manifest.plan.points if point.name in names)

    def _in_time(self, number: int, points: tuple[Visited, ...]) -> bool:
        """Whether it would end within the budget, its visits as long as those of this session. The
        suite's own time is one for launches that are added.
        """
        plan, weights = self.directory.manifest.plan, self.weights
        if number >= plan.launches and self.directory.manifest.looks and not self.options.budget:
            self.budget.seconds = self.options.asked_suite.until_decided or math.inf
        whole = math.fsum(weights.values())
        visits = self.directory.records[len(self.done) :]
        launches = grouped((visit.launch, weights[visit.point.name]) for visit in visits)
        fresh = sum(math.fsum(made) / whole for made in launches.values())
        used, ahead = self.budget.used, math.fsum(weights[point.name] for point in points)
        if fresh and used + used / fresh * (ahead / whole) > self.budget.seconds:
            return False
        self.added += ahead if number >= plan.launches else 0.0
        return True

    def reach(self) -> float:
        """How far the widest interval of a point's seconds reaches from its median, as a share of
        that.
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
    """The manifest says what is asked now. What the forecast says of time goes by launches."""
    manifest = directory.manifest
    plan, begun = (
        manifest.plan,
        1 + max((record.launch for record in directory.records), default=-1),
    )
    launches = options.launches or plan.launches
    longer = {"seconds": launches / plan.launches, "timed": launches / plan.launches}
    forecast = {name: value * longer.get(name, 1.0) for name, value in manifest.forecast.items()}
    changed = replace(plan, launches=launches, patience=options.patience or plan.patience)
    found = replace(manifest, plan=changed, options=asdict(options), forecast=forecast)
    if begun > (found.most_launches if launches == plan.launches else launches):
        raise BadArgument(
            f"launches is {launches}, but {directory.path} has already begun {begun}",
            "ask for as many, or more",
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
    """Measure a suite into the run directory `out`, and return the run. `options` are those of
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
    names = {point.engine for point in plan.points if is_peer(point)}
    return [known(name, plan.peers.get(name, "")) for name in sorted(names)]


def _checks(plan: Plan, machine: Machine) -> tuple[Check, ...]:
    """On the CPUs of the point with most threads."""
    cpus = max((point.cpus for point in plan.points), key=len, default=machine.allowed)
    return preflight(Files("/"), machine, cpus)


def _evidence(options: Options, machine: Machine) -> Evidence | None:
    """What earlier runs have seen of schedules; None where nothing shall be tuned."""
    return Evidence.asked(options.tuning, machine.fingerprint, options.kernels.path)


def _known(options: Options, sweep: Sweep, machine: Machine) -> tuple[dict[str, Any] | None, str]:
    """Of it what the points of a sweep go by, and a line on why there is none."""
    if not (evidence := _evidence(options, machine)):
        return None, ""
    known, remark = evidence.read()
    return {
        name: known[name] for name in classes(sweep.points, sweep.needs, machine) if name in known
    }, remark


def planned(options: Options, library: Library) -> tuple[Sweep, Forecast, Machine]:
    """What a sweep would measure here; an error where that is nothing, or does not fit memory."""
    machine = describe()
    site = Site(machine, available_memory(), options.isa, library=library, peers=options.paths)
    found = expand(options.asked_suite, site, options.seed, options.only)
    plan = replace(
        found.plan,
        library=options.library or "",
        plugin=several(options.plugin),
        foreign=library.foreign_variants,
        peers=options.paths,
        neighbour=bool(options.neighbour),
    )
    found = replace(found, plan=plan)
    seen = foreseen(found, options, machine)
    found = replace(found, plan=replace(found.plan, patience=options.patience or seen.patience))
    refuse_too_large(found)
    refuse_empty(found, site, options.only)
    refuse_without_plugin(found, site)
    refuse_without_peer(found, site)
    if options.neighbour and not any(neighbours(machine, point.cpus) for point in found.points):
        raise Refused(
            "every point uses all cores of its NUMA nodes, so none is free for a neighbour",
            "fewer threads: --axis threads=1",
        )
    return found, seen, machine


def foreseen(found: Sweep, options: Options, machine: Machine) -> Forecast:
    """The one forecast of a suite, for whoever lists, plans or sweeps it."""
    tuned = classes(found.points, found.needs, machine) if options.tuning != OFF else ()
    adds = options.settled(found.suite).until_decided
    return replace(forecast(found, len(tuned)), until=found.suite.until_decided if adds else 0.0)


def _kept(seen: Forecast) -> dict[str, float]:
    """Of a forecast, in a manifest."""
    facts = {name: float(getattr(seen, name)) for name in ("seconds", "timed", "memory", "until")}
    return facts | {"tuned": seen.tuned}


def tune(
    options: Options, fresh: bool, follow: Follow = lambda records, count: iter(records)
) -> tuple[str, tuple[Tuned, ...], str, list[str]]:
    """Schedules alone: what the first launch of a sweep would choose, without the sweep. `fresh`:
    without what earlier runs have seen. `follow` passes the visits on, of which there are so many.
    Returns the suite's name, what was tuned, the file that holds what was seen, or "", and lines on
    what could not be done.
    """
    sweep, _, machine = planned(options, options.kernels)
    evidence = _evidence(options, machine)
    known, remark = evidence.read() if evidence and not fresh else ({}, "")
    found = classes(sweep.points, sweep.needs, machine)
    plan = replace(
        sweep.plan,
        points=tuple(
            dict.fromkeys(
                min(own, key=lambda point: sweep.needs[point].arena) for own in found.values()
            )
        ),
        launches=1,
        samples=1,
        sample_time=_TUNED,
        tuning={name: known[name] for name in found if name in known},
    )
    visits = list(follow(run(plan, machine, sweep.needs), len(plan.points)))
    tunings = tuple(tuned for visit in visits for tuned in visit.tuned)
    unsaid = evidence.add(tunings, fresh) if evidence and tunings else ""
    errors = (f"{visit.point.name}: {visit.error}" for visit in visits if visit.error)
    file = str(evidence.path) if evidence and tunings and not unsaid else ""
    return sweep.suite.name, tunings, file, list(filter(None, (remark, *errors, unsaid)))
