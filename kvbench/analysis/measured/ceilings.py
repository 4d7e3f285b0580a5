"""Ceilings, from a run's own probes, in every form that these took; and which of them a point may
be held against: those of its own run alone.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from functools import cache, partial
from operator import attrgetter
from statistics import harmonic_mean, median
from typing import Any, NamedTuple

from kvbench.analysis.measured.estimates import steady
from kvbench.analysis.measured.speeds import at_speed
from kvbench.grouping import grouped
from kvbench.intervals import interval
from kvbench.model import COMPUTE, PLAIN, Ceiling, Machine, Point, Probe, Record, Sample
from kvbench.model.point import ATTENDS
from kvbench.native import default_library
from kvbench.regime import NO_LEVEL, Lies, Regime, classify
from kvbench.units import gbps

COVERAGE = 0.99  # of the intervals: a shared host drifts from run to run, further than 0.95 allows
REACH = 2.0  # a footprint so many times larger or smaller may still lie on the same plateau


class NoCeiling(StrEnum):
    """Why a point has no ceiling."""

    NONE = ""
    NOT_PROBED = "not probed"
    OTHERS = "other level, instruction set, CPUs or pages"
    UNLIKE = "no footprint is near enough"
    ZERO = "its probe moved nothing"


READ, COPY = ("read",), ("copy", "copy_nt")  # what reads, and a store, are held against
_order = attrgetter("cpus", "pages", "isa", "bytes")
_CORE = "core"  # the level of what needs no memory
WITHOUT_MEMORY = frozenset({*COMPUTE, "clock"})


def ceilings(records: Iterable[Record], machine: Machine) -> tuple[Ceiling, ...]:
    """One for each probe and form that has samples in the records of a run, sorted, without visits
    in which the cores were slow, where enough others are left. `low` and `high` are two of the
    launches' medians: the narrowest symmetric pair that holds the true one with COVERAGE, whatever
    the distribution; of 11 launches or fewer their range.
    """
    found = grouped(
        (record.point, record)
        for record in at_speed(records)
        if isinstance(record.point, Probe) and record.complete
    )
    made = []
    for probe in sorted(found, key=lambda probe: (probe.op, probe.threads, *_order(probe))):
        forms = dict.fromkeys(
            sample.program for record in found[probe] for sample in record.samples
        )
        made += [_ceiling(probe, form, found[probe], machine) for form in forms]
    return tuple(made)


def value(record: Record, sample: Sample) -> float:
    """GB/s; what computes: GFLOP/s; latency: ns for each load; clock: GHz, an addition being one
    cycle.
    """
    assert isinstance(record.point, Point | Probe)  # a contrast has samples of its points
    op, traffic = record.point.op, record.traffic[sample.program]
    if op == "latency":
        return sample.each / record.steps * 1e9
    count = (
        traffic.flops
        if op in COMPUTE
        else record.steps
        if op == "clock"
        else traffic.bytes_compulsory
    )
    return gbps(count * sample.passes, sample.seconds)


def _ceiling(probe: Probe, program: str, records: list[Record], machine: Machine) -> Ceiling:
    launches = grouped(
        (record.launch, value(record, sample))
        for record in sorted(records, key=lambda record: record.launch)
        for sample in record.samples
        if sample.program == program
    )
    medians = sorted(median(values) for values in launches.values())
    low, high = interval(medians, COVERAGE)
    core = probe.op in WITHOUT_MEMORY
    return Ceiling(
        run=records[0].run,
        probe=probe,
        level=_CORE if core else classify(machine, probe.cpus, probe.bytes).word,
        median=median(medians),
        low=low,
        high=high,
        samples=tuple(tuple(values) for values in launches.values()),
        stable=steady(medians),
        huge=huge_share(records),
        form=PLAIN if program == "point" else program,
    )


def huge_share(records: Iterable[Record]) -> float | None:
    """The least share of any launch that is really on huge pages; None where there is no memory."""
    shares = [
        r.memory["huge_bytes"] / r.memory["resident_bytes"]
        for r in records
        if r.memory.get("resident_bytes")
    ]
    return min(shares, default=None)


class Peak(NamedTuple):
    """GFLOP/s."""

    median: float
    high: float


class Roofs:
    """What points of a run are held against: the regime of a footprint, and the run's own ceilings
    for it. Points ask the same again and again: each question is answered once.
    """

    def __init__(self, machine: Machine, ceilings: Iterable[Ceiling]) -> None:
        self.peak = machine.facts.get("dram_peak")  # GB/s that the machine's DRAM allows in theory
        self._own = tuple(ceilings)
        self._best = cache(self._best_of)
        self._regime = cache(partial(classify, machine))

    def regime(self, point: Point, footprint: float) -> Regime:
        if point.streamed:
            return Regime("mixed", Lies.DISPLACED, "high")
        return self._regime(point.cpus, footprint, evicted=point.residency == "evicted")

    def ceiling(
        self, point: Point, level: str, footprint: float
    ) -> tuple[Ceiling | None, NoCeiling]:
        """The best at this footprint of all forms, by these threads or some of them: reads or
        copies. Or None, and why there is none.
        """
        return self._best(held_against(point), *_who(point), level, footprint)

    def computed(self, point: Point) -> Peak | None:
        """Of the products that its kernel makes, some of K and the others of V."""
        parts = point.shape.parts_of_flops
        ops = default_library().computes(point.variant, point.kv_dtype)
        found = [peak for op in ops if (peak := self.by_itself(op, point))]
        if len(found) < len(ops):
            return None
        ends = zip(*((peak.median, peak.high) for peak in found), strict=True)
        return Peak(*(harmonic_mean(end, weights=parts) for end in ends))

    def by_itself(self, op: str, point: Point, level: str | None = None) -> Ceiling | None:
        """Plain, by the point's own threads: reads of memory, or instructions."""
        plain = (ceiling for ceiling in self._own if ceiling.form == PLAIN)
        found, _ = ceiling_for(plain, op, *_who(point), level)
        return found if found and found.median > 0 else None

    def _best_of(
        self, ops: tuple[str, ...], isa: str, cpus: tuple[int, ...], pages: str, *where: Any
    ) -> tuple[Ceiling | None, NoCeiling]:
        """By fewer threads, too, where that is faster: of memory they may need less than all."""
        some = {ceiling.probe.cpus for ceiling in self._own if set(ceiling.probe.cpus) < set(cpus)}
        asked = ((op, team) for team in (cpus, *some) for op in ops)
        found, notes = zip(
            *(ceiling_for(self._own, op, isa, team, pages, *where) for op, team in asked),
            strict=True,
        )
        best = max(filter(None, found), key=lambda ceiling: ceiling.median, default=None)
        if best and best.median <= 0:
            return None, NoCeiling.ZERO
        return best, NoCeiling.NONE if best else notes[0]


def held_against(point: Point) -> tuple[str, ...]:
    """Ops of probes: reads for a decode and for a step, copies for a store."""
    return READ if point.op in ATTENDS else COPY


def _who(point: Point) -> tuple[str, tuple[int, ...], str]:
    return point.isa, point.cpus, point.pages


def ceiling_for(
    ceilings: Iterable[Ceiling],
    op: str,
    isa: str,
    cpus: Iterable[int],
    pages: str,
    level: str | None = None,
    footprint: float | None = None,
) -> tuple[Ceiling | None, NoCeiling]:
    """The one that a point may be held against, among those of a run; or None, and why there is
    none. Of a `level`, the best; with a `footprint` the best at the nearest size, within the level
    if one is given, else within REACH.
    """
    if level in NO_LEVEL:
        level = None  # it covers footprints that have nothing in common
    if not (found := [ceiling for ceiling in ceilings if ceiling.probe.op == op]):
        return None, NoCeiling.NOT_PROBED
    wanted = isa, sorted(cpus), op in WITHOUT_MEMORY or pages, level
    found = [ceiling for ceiling in found if wanted == _alike(ceiling, level)]
    if not found:
        return None, NoCeiling.OTHERS
    if footprint is not None:
        away = [abs(math.log2(max(ceiling.probe.bytes, 1) / footprint)) for ceiling in found]
        if level is None and min(away) > math.log2(REACH):
            return None, NoCeiling.UNLIKE
        found = [
            ceiling for ceiling, distance in zip(found, away, strict=True) if distance == min(away)
        ]
    return max(found, key=lambda ceiling: ceiling.median), NoCeiling.NONE


def _alike(ceiling: Ceiling, level: str | None) -> tuple[object, ...]:
    """What must be as wanted. The order of CPUs decides nothing; how often each is named is the
    number of its threads.
    """
    probe = ceiling.probe
    pages = probe.op in WITHOUT_MEMORY or probe.pages
    return probe.isa, sorted(probe.cpus), pages, level and ceiling.level
