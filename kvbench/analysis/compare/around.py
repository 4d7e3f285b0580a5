"""What both runs measured of the machine itself, launch by launch, and which of it a point is held against."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from kvbench.analysis.ceilings import REACH, value
from kvbench.analysis.launches import complete
from kvbench.analysis.roofs import COPY, READ
from kvbench.model import Point, Probe, Record

Rates = dict[int, float]  # by launch; more is better


@dataclass(frozen=True, slots=True)
class Around:
    """Probes that both runs have, with what they reached: of base and of head."""

    found: dict[Probe, tuple[Rates, Rates]]

    @classmethod
    def of(cls, base: Iterable[Record], head: Iterable[Record]) -> "Around":
        ours, theirs = _rates(base), _rates(head)
        return cls({probe: (ours[probe], theirs[probe]) for probe in ours if probe in theirs})

    def core(self, point: Point, op: str) -> tuple[Rates, Rates] | None:
        """Of a probe that needs no memory."""
        alike = (both for probe, both in self.found.items() if probe.op == op and _here(probe) == _here(point))
        return next(alike, None)

    def ceiling(self, point: Point, footprint: float) -> tuple[Rates, Rates] | None:
        """Reads for a decode and copies for a store, of the nearest footprint: the fastest of them, over both runs."""
        ops = READ if point.op == "decode" else COPY
        alike = [p for p in self.found if p.op in ops and _here(p) == _here(point) and p.pages == point.pages]
        if not alike:
            return None
        most = max(probe.bytes for probe in alike)  # it leaves all caches behind, as what is larger or evicted does
        wanted = most if point.residency == "evicted" else min(footprint, most)
        away = [abs(math.log2(probe.bytes / wanted)) for probe in alike]
        if min(away) > math.log2(REACH):
            return None
        near = [self.found[probe] for probe, distance in zip(alike, away, strict=True) if distance == min(away)]
        return max(near, key=lambda both: median(rate for side in both for rate in side.values()))


def _here(asked: Point | Probe) -> tuple[str, Sequence[int]]:
    return asked.isa, sorted(asked.cpus)


def _rates(records: Iterable[Record]) -> dict[Probe, Rates]:
    """Medians of launches. What a probe is said not to have moved at all has no rate."""
    values: dict[Probe, dict[int, list[float]]] = {}
    for record in records:
        if isinstance(record.point, Probe) and complete(record):
            own = values.setdefault(record.point, {}).setdefault(record.launch, [])
            own += [value(record, sample) for sample in record.samples if sample.program == "point"]
    found = {probe: {launch: median(own) for launch, own in each.items()} for probe, each in values.items()}
    return {probe: rates for probe, rates in found.items() if min(rates.values()) > 0}
