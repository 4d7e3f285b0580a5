"""Schedules alone: what the first launch of a sweep would choose, without the sweep."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from kvbench.model import Record, Tuned
from kvbench.plan.classes import classes
from kvbench.runner import run
from kvbench.session.options import Options
from kvbench.session.session import planned
from kvbench.store.evidence import Evidence

_SAMPLE = 0.001  # seconds; a visit has one of the point, for it is none of the tuning
Follow = Callable[[Iterable[Record], int], Iterator[Record]]


@dataclass(frozen=True, slots=True)
class Tunings:
    """`file`: that holds what was seen, or "". `remarks`: lines on what could not be done."""

    suite: str
    tunings: tuple[Tuned, ...]
    file: str
    remarks: tuple[str, ...]


def tune(options: Options, fresh: bool, follow: Follow = lambda records, count: iter(records)) -> Tunings:
    """`fresh`: without what earlier runs have seen. `follow` passes the visits on, of which there are so many."""
    library = options.kernels
    sweep, seen, machine = planned(options, library)
    evidence = Evidence.asked(options.tuning, machine.fingerprint, library.path)
    known, remark = evidence.read() if evidence and not fresh else ({}, "")
    found = classes(sweep.points, sweep.needs, machine)
    plan = replace(
        sweep.plan,
        points=tuple(dict.fromkeys(min(own, key=lambda point: sweep.needs[point].arena) for own in found.values())),
        launches=1,
        samples=1,
        sample_time=_SAMPLE,
        patience=seen.patience,
        library=options.library or "",
        tuning={name: known[name] for name in found if name in known},
    )
    visits = list(follow(run(plan), len(plan.points)))
    tunings = tuple(tuned for visit in visits for tuned in visit.tuned)
    unsaid = evidence.add(tunings, fresh) if evidence and tunings else ""
    errors = (f"{visit.point.name}: {visit.error}" for visit in visits if visit.error)
    file = str(evidence.path) if evidence and tunings and not unsaid else ""
    return Tunings(sweep.suite.name, tunings, file, tuple(filter(None, (remark, *errors, unsaid))))
