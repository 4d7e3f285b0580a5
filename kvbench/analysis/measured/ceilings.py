"""Ceilings from a run's own probes, in every form that was measured, and the ceilings that a point
may be compared with: only those of its own run.
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

COVERAGE = 0.99  # of intervals: shared hosts drift from run to run by more than 0.95 would cover
REACH = 2.0  # a footprint at most this many times larger or smaller may be on the same plateau


class NoCeiling(StrEnum):
    """Why a point has no ceiling."""

    NONE = ""
    NOT_PROBED = "not probed"
    OTHERS = "other level, instruction set, CPUs or pages"
    UNLIKE = "no footprint is near enough"
    ZERO = "its probe moved nothing"


READ, COPY = ("read",), ("copy", "copy_nt")  # the roofs of reading ops, and of stores
_order = attrgetter("cpus", "pages", "isa", "bytes")
_CORE = "core"  # the level of probes that need no memory
WITHOUT_MEMORY = frozenset({*COMPUTE, "clock"})


def ceilings(records: Iterable[Record], machine: Machine) -> tuple[Ceiling, ...]:
    """One ceiling for each probe and form that has samples in the records of a run, sorted. Visits
    with slow cores are left out if enough others remain.

    low, high: two of the launches' medians, the narrowest symmetric pair that holds the true median
    with COVERAGE, whatever the distribution. With 11 launches or fewer it is their range.
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
    """The value of a sample, in GB/s. Arithmetic: GFLOP/s. latency: ns per load. clock: GHz, as an
    addition takes one cycle.
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
    """The smallest share of memory on huge pages in any launch; None if there is no memory."""
    shares = [
        r.memory["huge_bytes"] / r.memory["resident_bytes"]
        for r in records
        if r.memory.get("resident_bytes")
    ]
    return min(shares, default=None)


class Peak(NamedTuple):
    """A peak of arithmetic, in GFLOP/s."""

    median: float
    high: float


class Roofs:
    """The roofs of a run's points: the regime of a footprint, and the run's own ceilings for it.
    Answers are cached, because points repeat the questions.
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
        """The fastest ceiling at this footprint, over all forms, and over all or some of these
        threads: reads or copies. Or None, and the reason.
        """
        return self._best(held_against(point), *_who(point), level, footprint)

    def computed(self, point: Point) -> Peak | None:
        """The peak of the products of its kernel, weighted by the parts of K and of V."""
        parts = point.shape.parts_of_flops
        ops = default_library().computes(point.variant, point.kv_dtype)
        found = [peak for op in ops if (peak := self.by_itself(op, point))]
        if len(found) < len(ops):
            return None
        ends = zip(*((peak.median, peak.high) for peak in found), strict=True)
        return Peak(*(harmonic_mean(end, weights=parts) for end in ends))

    def by_itself(self, op: str, point: Point, level: str | None = None) -> Ceiling | None:
        """A plain ceiling by the point's own threads: reads of memory, or instructions."""
        plain = (ceiling for ceiling in self._own if ceiling.form == PLAIN)
        found, _ = ceiling_for(plain, op, *_who(point), level)
        return found if found and found.median > 0 else None

    def _best_of(
        self, ops: tuple[str, ...], isa: str, cpus: tuple[int, ...], pages: str, *where: Any
    ) -> tuple[Ceiling | None, NoCeiling]:
        """The fastest ceiling, also by fewer threads: some of the threads may be enough to saturate
        memory.
        """
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
    """The ops of the probes that a point is compared with: reads for a decode or a step, copies for
    a store.
    """
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
    """The ceiling of a run that fits a point; or None, and the reason.

    level: the fastest of that level. footprint: the fastest at the nearest size, within the level
    if one is given, else within REACH.
    """
    if level in NO_LEVEL:
        level = None  # such a word covers very different footprints
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
    """The fields that must match. The order of CPUs does not matter; a CPU counts once for each of
    its threads.
    """
    probe = ceiling.probe
    pages = probe.op in WITHOUT_MEMORY or probe.pages
    return probe.isa, sorted(probe.cpus), pages, level and ceiling.level
