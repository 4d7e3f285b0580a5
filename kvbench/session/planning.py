"""Plan a sweep: what it measures and how long that takes. Also tune schedules without a sweep."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from kvbench.errors import Refused
from kvbench.machine import available_memory, describe
from kvbench.machine.placement import neighbours
from kvbench.model import Contrast, Machine, Plan, Point, Record, Tuned, several
from kvbench.native import Library
from kvbench.plan import Forecast, Site, Sweep, expand, forecast, refuse_too_large
from kvbench.plan.classes import classes, level
from kvbench.plan.expansion import refuse_empty, refuse_without_peer, refuse_without_plugin
from kvbench.runner import run
from kvbench.session.line import expected
from kvbench.session.options import Options
from kvbench.store.evidence import OFF, Evidence

_TUNED = 0.001  # seconds of the point's one sample: a visit needs it, the tuner does not
Follow = Callable[[Iterable[Record], int], Iterator[Record]]


def evidence_of(options: Options, machine: Machine) -> Evidence | None:
    """Measurements of schedules from earlier runs; None if tuning is off."""
    return Evidence.asked(options.tuning, machine.fingerprint, options.kernels.path)


def schedules_of(
    options: Options, sweep: Sweep, machine: Machine
) -> tuple[dict[str, Any] | None, str]:
    """The part of that evidence for a sweep's points, and a message on why there is none."""
    if not (found := evidence_of(options, machine)):
        return None, ""
    seen, remark = found.read()
    return {
        name: seen[name] for name in classes(sweep.points, sweep.needs, machine) if name in seen
    }, remark


def planned(options: Options, library: Library) -> tuple[Sweep, Forecast, Machine]:
    """Plan what a sweep would measure here. Raises an error if that is nothing, or does not fit
    memory.
    """
    machine, peers = describe(), options.builds
    site = Site(machine, available_memory(), options.isa, library=library, peers=peers)
    found = expand(options.asked_suite, site, options.seed, options.only)
    plan = replace(
        found.plan,
        library=options.library or "",
        plugin=several(options.plugin),
        foreign=library.foreign_variants,
        peers={word: build.path for word, build in peers.items()},
        pythons={word: build.python for word, build in peers.items() if build.python},
        neighbour=bool(options.neighbour),
    )
    found = replace(found, plan=plan)
    found, seen = foreseen(found, options, machine)
    found = replace(found, plan=replace(found.plan, patience=options.patience or seen.patience))
    refuse_too_large(found)
    refuse_empty(found, site, options.only)
    refuse_without_plugin(found, site)
    refuse_without_peer(found, site)
    if options.neighbour and not any(neighbours(machine, point.cpus) for point in found.points):
        raise Refused(
            "every point uses all cores of its NUMA nodes, so no core is free for a neighbour",
            "use fewer threads: --axis threads=1",
        )
    return found, seen, machine


def _without(found: Sweep, line: tuple[Point, ...], machine: Machine) -> Plan:
    """The plan without contrasts of dtypes that the line times side by side anyway. Contrasts with
    pairs stay: the line has no pairs.
    """

    def asks(factor: str, point: Point) -> tuple[str, str, str]:
        return factor, point.op, level(point, found.needs[point], machine)

    same = asks("dtype", line[0])
    left = (
        each
        for each in found.plan.points
        if not isinstance(each, Contrast)
        or asks(each.factor, each.points[0]) != same
        or any(point.v_dtype for point in each.points)
    )
    return replace(found.plan, points=tuple(left))


def foreseen(found: Sweep, options: Options, machine: Machine) -> tuple[Sweep, Forecast]:
    """Add the line to a sweep that will have one, and make its forecast. All commands that list,
    plan or sweep use this forecast.
    """
    if found.suite.contrasts and (line := expected(found, machine)):
        found = replace(found, plan=_without(found, line, machine), line=line)
    tuned = classes(found.points, found.needs, machine) if options.tuning != OFF else ()
    adds = options.settled(found.suite).until_decided
    until = found.suite.until_decided if adds else 0.0
    return found, replace(forecast(found, len(tuned)), until=until)


def kept_forecast(seen: Forecast) -> dict[str, float]:
    """The part of a forecast that a manifest keeps."""
    names = ("seconds", "timed", "memory", "until", "line")
    return {name: float(getattr(seen, name)) for name in names} | {"tuned": seen.tuned}


def tune(
    options: Options, fresh: bool, follow: Follow = lambda records, count: iter(records)
) -> tuple[str, tuple[Tuned, ...], str, list[str]]:
    """Choose schedules as the first launch of a sweep would, without the sweep. `fresh`: ignore
    earlier runs. `follow` passes the visits on; its second argument is their number. Returns the
    suite's name, what was tuned, the file that keeps the measurements (or ""), and messages on what
    failed.
    """
    sweep, _, machine = planned(options, options.kernels)
    evidence = evidence_of(options, machine)
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
