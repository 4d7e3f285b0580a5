"""A sweep from its suite to its run directory: what was asked, measured and kept.

begin or resume:  suite, machine -> plan -> manifest, preflight
records:          each is on the disk before the next visit begins
finish:           what others read, rebuilt from the journal
"""

import hashlib
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Self

import kvbench
from kvbench.analysis.ceilings import ceilings
from kvbench.analysis.interval import interval
from kvbench.analysis.launches import COVERAGE
from kvbench.analysis.machine import plain as machine_facts
from kvbench.analysis.machine import profile
from kvbench.errors import BadArgument, NotComparable
from kvbench.machine import available_memory, describe
from kvbench.machine.files import Files
from kvbench.machine.preflight import preflight
from kvbench.model import Check, Machine, Point, Probe, Record
from kvbench.native import Library, default_library
from kvbench.plan import Forecast, Site, Sweep, expand, forecast, needs_here, refuse_too_large, visits
from kvbench.results import Run, load
from kvbench.runner import Execute, new_run, run
from kvbench.store import Manifest, RunDirectory
from kvbench.suite import Suite, find
from kvbench.suite.override import from_options

MOST_LAUNCHES = 100  # that --target-ci adds up to
_MEASURING = ("model", "native", "plan", "worker")
_LATER = frozenset(
    {"budget", "target_ci", "patience"}
)  # say when to stop, not what to measure: a resumed run may differ


@dataclass(frozen=True, slots=True)
class Options:
    """What a sweep is asked for; None leaves it to the suite, or to the machine. Times in seconds.

    axes: "context=1k,8k" in place of the suite's own. only: patterns for names of points. target_ci: launches are added
    until every point's interval is no further than that share from its median. budget: no launch begins that would
    not end in time.
    """

    suite: str = "quick"
    axes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    launches: int | None = None
    samples: int | None = None
    sample_time: float | None = None
    seed: int = 1
    cpus: str | None = None
    isa: str | None = None
    pages: str | None = None
    library: str | None = None
    budget: float | None = None
    target_ci: float | None = None
    patience: float | None = None

    def __post_init__(self) -> None:
        for name, least, most in (
            ("launches", 1, 1000),
            ("samples", 1, 1000),
            ("sample_time", 1e-4, 10.0),
            ("budget", 1e-9, 1e9),
            ("target_ci", 1e-6, 1.0),
            ("patience", 0.1, 1e6),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise BadArgument(f"{name} is {value:g}", f"{least:g} to {most:g}")
        if self.target_ci and not self.budget:
            raise BadArgument("target_ci without a budget might never end", "give both, such as a budget of 10m")

    @property
    def all_axes(self) -> tuple[str, ...]:
        """With those that have an option of their own."""
        own = (f"{name}={value}" for name in ("cpus", "pages") if (value := getattr(self, name)) is not None)
        return (*self.axes, *own)


class Session:
    """One process's part in a run. `done`: records there were before it. It owns the directory."""

    def __init__(self, directory: RunDirectory, options: Options, machine: Machine, checks: tuple[Check, ...]) -> None:
        """As begin() and resume() call it."""
        self.directory, self.options, self.machine, self.checks = directory, options, machine, checks
        self.done = tuple(directory.records)
        self._execute: Execute | None = None
        self._start = time.monotonic()
        self._longest = 0.0  # seconds of a launch

    @classmethod
    def begin(
        cls,
        options: Options,
        out: Path | str | None = None,
        command: str = "kvbench.sweep()",
        execute: Execute | None = None,
    ) -> Self:
        """Without `out`, a folder of its own below runs/. `command`: how the run came about."""
        sweep, seen, machine = planned(options)
        plan = replace(sweep.plan, run=new_run(), patience=options.patience or seen.patience)
        plan = replace(plan, library=str(Path(options.library).absolute()) if options.library else "")
        manifest = Manifest(
            run=plan.run,
            created=datetime.now().astimezone().isoformat(timespec="seconds"),
            suite=sweep.suite.name,
            question=sweep.suite.question,
            plan=plan,
            skips=sweep.skips,
            options=asdict(options),
            identity=_identity(options, sweep.suite, machine),
            versions=_versions(options, machine),
            command=command,
            forecast={"seconds": seen.seconds, "timed": seen.timed, "memory": float(seen.memory)},
        )
        directory = RunDirectory.create(Path(out) if out else Path("runs", f"{sweep.suite.name}-{plan.run}"), manifest)
        return cls._opened(directory, options, machine, execute)

    @classmethod
    def resume(cls, out: Path | str, asked: dict[str, Any] | None = None, execute: Execute | None = None) -> Self:
        """`asked`: options given anew. They must be those that the run began with, but for when to stop."""
        directory = RunDirectory.open(out, write=True)
        try:
            options, machine = _resumed(directory, asked or {}), describe()
            _refuse_changed(directory, _identity(options, _suite(options), machine))
            return cls._opened(directory, options, machine, execute)
        except BaseException:
            directory.close()
            raise

    @classmethod
    def _opened(cls, directory: RunDirectory, options: Options, machine: Machine, execute: Execute | None) -> Self:
        cpus = max((point.cpus for point in directory.manifest.plan.points), key=len, default=machine.allowed)
        found = cls(directory, options, machine, preflight(Files("/"), machine, cpus))
        found._execute = execute
        found._write_machine()
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.directory.close()

    # ---- measuring -------------------------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Measure what is left. Each record is kept before it is yielded."""
        for found in run(self.directory.manifest.plan, self._execute, self.done, self._more):
            self.directory.append(found)
            yield found

    def finish(self) -> bool:
        """Rebuild what others read. False where no launch is complete yet."""
        self._write_machine()
        return self.directory.export()

    def _write_machine(self) -> None:
        found = replace(
            profile(self.machine, self.checks),
            run=self.directory.manifest.run,
            ceilings=ceilings(self.directory.records, self.machine),
        )
        self.directory.write_machine(machine_facts(found))

    def weights(self) -> dict[str, float]:
        """Seconds that each visit may take, by its point's name."""
        plan = self.directory.manifest.plan
        return {point.name: seconds for point, seconds in visits(plan, needs_here(plan.points, self.machine)).items()}

    def peak_memory(self) -> int:
        """Bytes of the largest process that has measured for this one."""
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10

    def _more(self, number: int) -> bool:
        """Whether launch `number` begins. One that has begun is finished."""
        records = self.directory.records
        if number <= max((record.launch for record in records), default=0):
            return True
        planned, budget, target = self.directory.manifest.plan.launches, self.options.budget, self.options.target_ci
        if number >= (MOST_LAUNCHES if target else planned):
            return False
        if target and number >= planned and self.reach() <= target:
            return False
        spent = time.monotonic() - self._start
        fresh = len({record.launch for record in records[len(self.done) :]})
        return not budget or not fresh or spent + spent / fresh <= budget

    def reach(self) -> float:
        """How far the widest interval of a point's seconds reaches from its median, as a share of that."""
        launches: dict[Point | Probe, list[float]] = {}
        for record in self.directory.records:
            own = [s.seconds / s.passes for s in record.samples if s.program == "point"]
            if own and isinstance(record.point, Point):
                launches.setdefault(record.point, []).append(median(own))
        widths = (
            max(high - middle, middle - low) / middle
            for values in launches.values()
            for (low, high), middle in [(interval(values, COVERAGE), median(values))]
        )
        return max(widths, default=0.0)


def sweep(
    suite: str = "quick",
    *,
    out: Path | str | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] = lambda record: None,
    **options: Any,
) -> Run:
    """Measure a suite into the run directory `out`, and return the run. `options` are those of Options."""
    session = Session.resume(out or "", options) if resume else Session.begin(Options(suite, **options), out)
    with session:
        try:
            for record in session.records():
                progress(record)
        finally:
            session.finish()
        return load(session.directory.path)


# ---- what is asked ---------------------------------------------------------------------------------------------------


def planned(options: Options) -> tuple[Sweep, Forecast, Machine]:
    """What a sweep would measure here; an error where that is nothing, or does not fit memory."""
    machine = describe()
    library = Library(options.library) if options.library else default_library()
    site = Site(machine, available_memory(), options.isa, library=library)
    found = expand(_suite(options), site, options.seed, options.only)
    seen = forecast(found)
    refuse_too_large(found, seen)
    if not found.needs:
        reasons = Counter(skip.reason for skip in found.skips).most_common(3)
        why = "".join(f"; {count} left out: {reason}" for reason, count in reasons)
        raise BadArgument(f"{found.suite.source} has no points here{why}", "see what kvbench plan says of it")
    return found, seen, machine


def _suite(options: Options) -> Suite:
    asked = {"launches": options.launches, "samples": options.samples, "seconds": options.sample_time}
    found = replace(find(options.suite), **{name: value for name, value in asked.items() if value is not None})
    return found.with_axes(from_options(options.all_axes)) if options.all_axes else found


def _resumed(directory: RunDirectory, asked: dict[str, Any]) -> Options:
    names = {field.name for field in fields(Options)}
    kept = {name: value for name, value in directory.manifest.options.items() if name in names}
    try:
        began = Options(**{name: tuple(v) if isinstance(v, list) else v for name, v in kept.items()})
    except (TypeError, ValueError) as error:
        raise BadArgument(f"{directory.path}: its options cannot be used: {error}", "begin another run") from None
    for name, value in asked.items():
        if name not in _LATER and value != getattr(began, name):
            raise BadArgument(
                f"{directory.path} was begun with {name} {getattr(began, name)}, not {value}",
                "resume it as it was begun, or begin another run with another --out",
            )
    return replace(began, **{name: value for name, value in asked.items() if name in _LATER})


# ---- what must stay the same -----------------------------------------------------------------------------------------


def _identity(options: Options, suite: Suite, machine: Machine) -> dict[str, str]:
    tables = [[(name, str(values)) for name, values in table.axes.items()] for table in (*suite.grids, *suite.skips)]
    return {
        "suite": _digest(repr((suite.question, tables, suite.launches, suite.samples, suite.seconds)).encode()),
        "build": _build(options.library),
        "machine": machine.fingerprint,
        "environment": machine.environment,
    }


@cache
def _build(library: str | None) -> str:
    """Of the kernels, and of the Python files that time them."""
    path = Path(library) if library else default_library().path
    sources = (file for folder in kvbench.__path__ for part in _MEASURING for file in Path(folder, part).rglob("*.py"))
    return _digest(path.read_bytes(), *(file.read_bytes() for file in sorted(sources)))


def _digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]


_CHANGED = {
    "suite": "the suite",
    "build": "kvbench or its library",
    "machine": "the machine",
    "environment": "the machine's set-up (kernel, microcode, quota, allowed CPUs, ...)",
}


def _refuse_changed(directory: RunDirectory, now: dict[str, str]) -> None:
    then = directory.manifest.identity
    changed = [what for name, what in _CHANGED.items() if then.get(name) != now[name]]
    if changed:
        raise NotComparable(
            f"{directory.path}: {' and '.join(changed)} changed since the run began", "begin another run"
        )


def _versions(options: Options, machine: Machine) -> dict[str, str]:
    library = Library(options.library) if options.library else default_library()
    host = os.uname()
    return {
        "kvbench": kvbench.__version__,
        "library": library.build,
        "python_version": sys.version.split()[0],
        "hostname": host.nodename,
        "platform": f"{host.sysname}-{host.release}-{host.machine}",
        "cpu_model_name": str(machine.facts["brand"].value or "unknown"),
    }
