"""The probes that a sweep's points are held against, measured in the same run: reads and copies of the same footprints,
CPUs, pages and tier; of memory by fewer of the threads, too; what computes, and the clock."""

import math
from collections.abc import Iterator, Mapping

from kvbench.model import Machine, Point, Probe
from kvbench.plan.needs import Needs, stores
from kvbench.plan.probes import GRAIN
from kvbench.regime import classify, dram_bytes, far_bytes

_PER_OCTAVE = 4  # footprints closer together than that share a ceiling
_COPIES = ("copy", "copy_nt")


def witnesses(found: Mapping[Point, Needs], machine: Machine) -> tuple[Probe, ...]:
    """Memory too, for every set of CPUs: whether a cache is faster than that is what is asked."""
    far = {cpus: far_bytes(machine, cpus) for cpus in {point.cpus for point in found}}
    alike = {  # points with the same witnesses: each is asked for once
        (n.footprint, p.residency == "evicted", p.isa, p.cpus, p.pages, stores(p), p.computes): p
        for p, n in found.items()
    }
    probes = (probe for point in alike.values() for probe in _of(point, found[point], machine, far[point.cpus]))
    return tuple(dict.fromkeys(probes))


def _of(point: Point, needed: Needs, machine: Machine, far: int) -> Iterator[Probe]:
    footprint = far if point.residency == "evicted" else needed.footprint
    fewer = [point.cpus[: 1 << bit] for bit in range((len(point.cpus) - 1).bit_length())]  # memory may need no more
    walked = [(point.cpus, _near(footprint, point, machine, far)), *((cpus, far) for cpus in (point.cpus, *fewer))]
    for cpus, count in dict.fromkeys(walked):
        grain = GRAIN * len(cpus)
        size = max(1, int(count // grain)) * grain if count < far else math.ceil(count / grain) * grain
        for op in ("read", *(_COPIES if stores(point) else ())):
            yield Probe(op, point.isa, cpus, point.pages, size)
    for op in dict.fromkeys(("flops", point.computes, "clock")):
        yield Probe(op, point.isa, point.cpus, point.pages, 0)


def _near(footprint: int, point: Point, machine: Machine, far: int) -> float:
    """All that no cache holds is alike. Else a neighbour of the same regime, which others may share."""
    if footprint >= (dram_bytes(machine, point.cpus) or far):
        return far
    near = 2.0 ** (round(math.log2(footprint) * _PER_OCTAVE) / _PER_OCTAVE)
    alike = classify(machine, point.cpus, near).word == classify(machine, point.cpus, footprint).word
    return near if alike else footprint
