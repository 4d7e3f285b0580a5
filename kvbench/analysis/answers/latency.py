"""The latency of memory beside a KV scan, and how much measuring it slows the scan: answers from
points with a chase.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Figure, Reason, Unit
from kvbench.analysis.answers.l3 import model_of
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.measured.chases import Chased, Seen, chased
from kvbench.analysis.measured.estimates import Estimate, enough
from kvbench.analysis.measured.rates import by_point
from kvbench.grouping import grouped
from kvbench.model import DEFAULTS, PLAIN, Ceiling
from kvbench.model.annotated import about
from kvbench.model.chases import CHASES, LOADS, OWN, SHARES
from kvbench.native import default_library

_DRIFT = 1.1  # ratio, in either direction: beyond it the idle latency is not one number
_LEVELS = ("L2", "L3", "DRAM")


@dataclass(frozen=True, slots=True)
class Step:
    """A chase beside a load that is paced to a share of its rate."""

    share: Annotated[int, about("%: share of its rate without waits that the load is paced to")]
    load: Annotated[
        Figure, about("GB/s that the load moved meanwhile; for an append, what it stored")
    ]
    gbps: Annotated[Figure, about("GB/s that load and chase moved together")]
    ns: Annotated[Figure, about("ns: latency; 50 % of the steps of the chase take no longer")]
    tail: Annotated[Figure, about("ns: latency; 95 % of the steps of the chase take no longer")]
    times: Annotated[Figure, about("times as long as idle, in the same rounds")]


@dataclass(frozen=True, slots=True)
class Curve:
    """The latency beside one load. `steps`: from few GB/s to many."""

    load: Annotated[str, about("read or copy (plain ones of memory), or the op of the point")]
    steps: Annotated[tuple[Step, ...], about("by the share of its rate")]
    falls: Annotated[
        tuple[int, ...], about("%: shares whose latency is surely below that of the share before")
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """A point with a chase beside it."""

    point: Annotated[str, about("its name")]
    op: Annotated[str, about("what it does: decode or append")]
    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    variant: Annotated[str, about("variant of the kernel")]
    model: Annotated[str, about("model of its layers; empty if unknown")]
    context: Annotated[int, about("tokens that every sequence holds")]
    threads: Annotated[int, about("threads that decode")]
    chase: Annotated[str, about("where the chase runs: node, remote or sibling")]
    cpu: Annotated[int, about("the CPU that chases")]
    bytes: Annotated[int, about("bytes: its random cycle")]
    few: Annotated[bool, about("whether there are too few cores to saturate memory")]
    idle: Annotated[Figure, about("ns: latency while the point's CPUs sleep")]
    spin: Annotated[Figure, about("ns: latency while the point's CPUs spin in L1")]
    spins: Annotated[bool, about("whether `spin` surely differs from `idle`")]
    moved: Annotated[Figure, about("GB/s that the idle chase moves, 64 bytes per access")]
    drift: Annotated[
        Figure, about("times as long: idle latency at the end of a round over that at its start")
    ]
    curves: Annotated[tuple[Curve, ...], about("plain reads, plain copies, and the point itself")]
    busy: Annotated[
        Answer,
        about(
            "times as long as idle, while plain reads move 90 % of their highest rate."
            " facts.gbps: the GB/s of these reads and the chase"
        ),
    ]
    alike: Annotated[
        Answer,
        about(
            "times as long beside the point as beside plain reads at the same GB/s. facts.gbps:"
            " these GB/s with the chase, the most that both reach"
        ),
    ]
    slowed: Annotated[
        Answer, about("share: the point's rate with the chase over its rate without it")
    ]


@dataclass(frozen=True, slots=True)
class Idle:
    """Latency of a cache level or memory by itself, from the middle-sized probe."""

    level: Annotated[str, about("L2, L3 or DRAM")]
    cpu: Annotated[int, about("the CPU that chases")]
    bytes: Annotated[int, about("bytes: the cycle")]
    ns: Annotated[Figure, about("ns: latency")]


@dataclass(frozen=True, slots=True)
class Latency:
    """The answers about latency.

    places: decodes of the usual dtype with the page's model come first, and of these the ones with
    the chase on a free core of their node. idle: for the CPU that chases beside the first place if
    it was probed, else for the first CPU that was.
    """

    places: Annotated[tuple[Place, ...], about("points with a chase beside them")] = ()
    idle: Annotated[tuple[Idle, ...], about("idle latency by level, for one CPU")] = ()

    @property
    def first(self) -> Place:
        """The place that the first screen shows."""
        return self.places[0]


def latency(tables: Tables, page: Workload) -> Latency:
    rows = {row["name"]: row for row in tables.points.to_dict("records")}
    asked = tables.contrasts[tables.contrasts["factor"] == pairs.CHASE]
    judged = {(row["visit"], row["base"]): row for row in asked.to_dict("records")}
    places = [
        _place(found, rows[found.point.name], judged, tables, page)
        for found in chased(by_point(tables.records))
        if found.point.name in rows
    ]
    if not places:
        return Latency()
    ordered = sorted(places, key=lambda place: _order(place, page))
    return Latency(tuple(ordered), tuple(_idle(tables, ordered[0])))


def _order(place: Place, page: Workload) -> tuple[object, ...]:
    """The order of places: it depends on what was asked for, not on measurements."""
    dtypes = default_library().words("dtype")
    unlike = place.op != DEFAULTS["op"], place.model != page.model
    usual = (getattr(place, name) != DEFAULTS[name] for name in ("dtype", "layout"))
    where = abs(place.context - page.context), CHASES.index(place.chase), -place.threads
    dtype = dtypes.index(place.dtype) if place.dtype in dtypes else len(dtypes)
    return *unlike, *usual, *where, dtype, place.dtype, place.variant, place.layout, place.point


Judged = Mapping[tuple[str, str], Row]  # by the name of a point and the base


def _place(found: Chased, row: Row, judged: Judged, tables: Tables, page: Workload) -> Place:
    names = ("op", "dtype", "layout", "variant", "context", "threads", "chase")
    busy, alike, slowed = _answers(found, row, judged)
    return Place(
        **{name: row[name] for name in names},
        point=row["name"],
        model=model_of(row, tables.models, page),
        cpu=found.chase.cpu,
        bytes=found.chase.bytes,
        few=found.few(tables.machine),
        idle=_figure(found.idle.ns, Unit.NS),
        spin=_figure(found.spin.ns, Unit.NS),
        spins=found.spin.times.low > 1 or found.spin.times.high < 1,
        moved=_figure(found.idle.gbps, Unit.GBPS),
        drift=_figure(found.drift, Unit.LENGTH),
        curves=tuple(_curve(found, load) for load in LOADS),
        busy=busy,
        alike=alike,
        slowed=slowed,
    )


# ---- curves --------------------------------------------------------------------------------------


def _curve(found: Chased, load: str) -> Curve:
    return Curve(
        load=found.point.op if load == OWN else load,
        steps=tuple(_step(share, found.loads[load, share]) for share in SHARES),
        falls=found.falls(load),
    )


def _step(share: int, seen: Seen) -> Step:
    return Step(
        share=share,
        load=_figure(seen.load, Unit.GBPS),
        gbps=_figure(seen.gbps, Unit.GBPS),
        ns=_figure(seen.ns, Unit.NS),
        tail=_figure(seen.tail, Unit.NS),
        times=_figure(seen.times, Unit.LENGTH),
    )


def _figure(found: Estimate, unit: Unit) -> Figure:
    return Figure(found.median, found.low, found.high, unit)


# ---- answers -------------------------------------------------------------------------------------


def _answers(found: Chased, row: Row, judged: Judged) -> tuple[Answer, Answer, Answer]:
    """Answer the questions busy, alike and slowed. A suspect point has none that depends on its
    rate.
    """
    name, suspect = row["name"], pd.notna(row["suspect"]) and bool(row["suspect"])
    busy = _told(judged[name, pairs.IDLE], "busy", gbps=found.busy.gbps.median)
    if _drifts(found.drift):
        busy = busy.because(busy.state, Reason.DRIFTS)
    if suspect:
        of = row["dtype"]
        alike, slowed = (
            Answer.untested(question, Reason.SUSPECT, of) for question in ("alike", "slowed")
        )
    else:
        alike = _told(judged[name, pairs.AS_MUCH], "alike", gbps=found.alike.gbps.median)
        slowed = _told(judged[name, pairs.UNCHASED], "slowed")
    return busy, alike, slowed


def _told(row: Row, question: str, **facts: float) -> Answer:
    """An answer from a row: latencies as "times as long", rates as a share."""
    rates = row["base"] == pairs.UNCHASED
    found = pairs.answer(row, question, row["dtype"], turned=not rates)
    unit = Unit.SHARE if rates else Unit.LENGTH
    own = found.figure and replace(found.figure, unit=unit)
    return replace(found, against="", figure=own, facts={**found.facts, **facts})


def _drifts(drift: Estimate) -> bool:
    """Whether the idle latency surely differs at the end of a round."""
    return enough(drift.launches) and (drift.low > _DRIFT or drift.high < 1 / _DRIFT)


# ---- idle latency by level -----------------------------------------------------------------------


def _idle(tables: Tables, place: Place) -> Iterator[Idle]:
    own = [
        each
        for each in tables.ceilings
        if each.probe.op == "latency" and each.form == PLAIN and each.probe.threads == 1
    ]
    cpus = {each.probe.cpus for each in own}
    cpu = (place.cpu,) if (place.cpu,) in cpus else min(cpus, default=())
    by_level = grouped((each.level, each) for each in own if each.probe.cpus == cpu)
    for level in _LEVELS:
        if found := by_level.get(level):
            yield _of_level(_middle(found))


def _middle(found: list[Ceiling]) -> Ceiling:
    """The probe of middle size; of two middle ones the smaller."""
    return sorted(found, key=lambda each: each.probe.bytes)[(len(found) - 1) // 2]


def _of_level(found: Ceiling) -> Idle:
    return Idle(
        level=found.level,
        cpu=found.probe.cpus[0],
        bytes=found.probe.bytes,
        ns=Figure(found.median, found.low, found.high, Unit.NS),
    )
