"""How fast memory and L3 are read: the states of memory that visits met, and L3 beside memory.

Memory: every visit counts in which the workload's threads read memory plainly, as probes or beside
points. Two states are reported if they surely differ. See `states`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd

from kvbench.analysis.answers.answer import Answer, Basis, Figure, Reason, Unit
from kvbench.analysis.answers.l3 import cpus_of, middle, untested
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.judge import COVERAGE, LIMITS
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.families import alone
from kvbench.analysis.measured.rates import by_point, measured
from kvbench.intervals import interval
from kvbench.model import PLAIN, Contrast, Point, Probe, Record
from kvbench.model.annotated import about
from kvbench.model.chases import NONE
from kvbench.model.point import LOCAL, Visited
from kvbench.model.program import MEMORY, SLICE
from kvbench.units import gbps

# the least visits of a state, and their least share: fewer are outliers
_FEWEST, _RARE = 2, 0.02
# least distances between two states, in standard deviations of visits within a state: between their
# means; from the mean of the usual state to the nearest visit of the other
_APART, _CLEAR = 6.0, 3.0
_NINE_OF_TEN = (0.05, 0.95)
_ROUNDING = 0.005  # the most that rate / beside may differ from the ratio: unseen at 3 digits


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The visits in which memory had about the same speed."""

    visits: Annotated[int, about("number of visits")]
    gbps: Annotated[float, about("GB/s: median of their medians")]
    low: Annotated[float, about("GB/s: 95 % of the visits are above it")]
    high: Annotated[float, about("GB/s: 95 % of the visits are below it")]


@dataclass(frozen=True, slots=True)
class Reads:
    """The rates of plain reads. `memory` is for the first of `states`, the usual one."""

    memory: Annotated[Answer, about("GB/s of plain reads of memory by the workload's threads")]
    states: Annotated[tuple[MemoryState, ...], about("one, or two; the usual one first")]
    visits: Annotated[int, about("visits that read memory")]
    l3: Annotated[Answer, about("times as fast as memory: plain reads of a slice in L3")]
    l3_rate: Annotated[Answer, about("GB/s of the reads of L3")]
    beside: Annotated[Answer, about("GB/s of memory in the same rounds")]


def reads(tables: Tables, page: Workload) -> Reads:
    visits = list(_visits(tables, page))
    l3, rate, beside = _near(tables, page)
    if not visits:
        none = Answer.untested("memory", Reason.NOT_MEASURED)
        return Reads(none, (), 0, l3, rate, beside)
    parts = states([visit.gbps for visit in visits])
    usual = set(parts[0])
    own = [visit for visit in visits if visit.gbps in usual]
    memory = Answer(
        "memory",
        "",
        tuple(dict.fromkeys(visit.name for visit in own)),
        Figure(median(parts[0]), *interval(parts[0], COVERAGE), Unit.GBPS),
        launches=len({visit.launch for visit in own}),
    )
    return Reads(memory, tuple(map(_state, parts)), len(visits), l3, rate, beside)


# ---- memory --------------------------------------------------------------------------------------


class _Visit(NamedTuple):
    """A visit that read memory, with its median rate."""

    name: str
    launch: int
    gbps: float


def _visits(tables: Tables, page: Workload) -> Iterator[_Visit]:
    plain = (each for each in tables.ceilings if each.form == PLAIN and each.level == "DRAM")
    probes = {each.probe for each in plain if each.probe.op == "read"}
    known = {record.point for record in tables.records if record.point.name in page.points}
    places = {_place(point) for point in known}
    chases = {NONE, *(point.chase for point in known if isinstance(point, Point))}
    cpus = cpus_of(tables, page)
    for record in tables.records:
        point, place = record.point, _place(record.point)
        # its reads also belong to another record
        shared = isinstance(point, Point) and (
            point.streamed or point.shape.q_len > 1 or point.chase not in chases
        )
        away = place not in places if places else place[0] != cpus
        if record.error or shared or away:
            continue
        probe = isinstance(record.point, Probe)
        program = "point" if probe else MEMORY
        if not probe or record.point in probes:
            yield from _visit(record, program)


def _place(point: Visited) -> tuple[tuple[int, ...], str, str]:
    """CPUs, kind of pages, and place of the memory."""
    first = point.points[0] if isinstance(point, Contrast) else point
    assert isinstance(first, Point | Probe)
    return first.cpus, first.pages, first.memory if isinstance(first, Point) else LOCAL


def _visit(record: Record, program: str) -> Iterator[_Visit]:
    taken = [s.each for s in record.samples if s.program == program]
    if taken:
        moved = record.traffic[program].bytes_compulsory
        yield _Visit(record.point.name, record.launch, gbps(moved, median(taken)))


def states(rates: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Split the rates of visits into one state or two, the usual one first: that of most visits, or
    of two equally common ones the slower.

    The cut minimizes the variance of logarithms within both parts. There are two states only if all
    of this holds: each has at least two visits and 2 % of all; their means differ by at least 5 %
    and by six standard deviations of visits within the states; and no visit of the rarer state lies
    within three deviations of the mean of the other.

    Visits of a single state with normal logarithms look like two states in 1 of 25 sets of seven,
    and in 1 of 100 sets of ten.
    """
    ordered = np.sort(np.log(rates))
    fewest = max(_FEWEST, math.ceil(_RARE * len(ordered)))
    cuts = range(fewest, len(ordered) - fewest + 1)
    if not cuts:
        return (tuple(rates),)
    within, cut = min((_within(ordered[:cut], ordered[cut:]), cut) for cut in cuts)
    deviation = math.sqrt(within / (len(ordered) - 2))
    means = ordered[:cut].mean(), ordered[cut:].mean()
    clear = ordered[cut] - means[0] if 2 * cut >= len(ordered) else means[1] - ordered[cut - 1]
    least = max(_APART * deviation, math.log1p(LIMITS.same))
    if means[1] - means[0] < least or clear < _CLEAR * deviation:
        return (tuple(rates),)
    border = math.exp((ordered[cut - 1] + ordered[cut]) / 2)
    slow, fast = (
        tuple(rate for rate in rates if (rate > border) == faster) for faster in (False, True)
    )
    return (fast, slow) if len(fast) > len(slow) else (slow, fast)


def _within(*parts: np.ndarray) -> float:
    """The sum of squares around the mean of each part."""
    return sum(len(each) * float(each.var()) for each in parts)


def _state(rates: Sequence[float]) -> MemoryState:
    low, high = np.quantile(rates, _NINE_OF_TEN)
    return MemoryState(len(rates), median(rates), float(low), float(high))


# ---- L3 ------------------------------------------------------------------------------------------


def _near(tables: Tables, page: Workload) -> tuple[Answer, Answer, Answer]:
    """The ratio of L3 to memory, and both rates, for the point with the middle ratio. If the
    medians of the rates do not give the ratio, the rate of memory is left out.
    """
    points = alone(tables.points)
    rows = points[points["l3_reads"].notna() & (points["threads"] == page.threads)]
    if rows.empty:
        none = untested("L3", tables, page)
        return none, _by_itself(tables, page) or none, none
    name = str(middle(rows, "l3_reads")["name"])
    own = next(own for point, own in by_point(tables.records).items() if point.name == name)
    found = measured(own)
    assert found.near is not None  # l3_reads comes from it
    rate, beside = found.rates[SLICE], found.rates[MEMORY]
    ratio = _answer("L3", name, found.near, Unit.TIMES)
    told = abs(math.log(rate.median / beside.median / found.near.median)) <= _ROUNDING
    return (
        ratio,
        replace(
            _answer("L3 rate", name, rate, Unit.GBPS),
            facts={"bytes": float(own[0].traffic[SLICE].bytes_compulsory)},
        ),
        _answer("memory beside L3", name, beside, Unit.GBPS)
        if told
        else Answer.untested("memory beside L3", Reason.NOT_CLEAR),
    )


def _answer(question: str, name: str, found: Estimate, unit: Unit) -> Answer:
    figure = Figure(found.median, found.low, found.high, unit)
    return Answer(question, "", (name,), figure, basis=Basis.ROUNDS, launches=found.launches)


def _by_itself(tables: Tables, page: Workload) -> Answer | None:
    """The rate of the middle probe of L3, from visits of its own."""
    cpus = cpus_of(tables, page)
    rows = pd.DataFrame(
        {"ceiling": each, "rate": each.median}
        for each in tables.ceilings
        if (each.probe.op, each.form, each.level) == ("read", PLAIN, "L3")
        and each.probe.cpus == cpus
    )
    if rows.empty:
        return None
    found = middle(rows, "rate")["ceiling"]
    figure = Figure(found.median, found.low, found.high, Unit.GBPS)
    return Answer("L3 rate", "", (found.probe.name,), figure, launches=len(found.samples))
