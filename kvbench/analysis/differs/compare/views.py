"""Ways to look at a point's time: a series of launches for each, as logarithms, so that differences
are ratios.

BESIDE   over the time of its witness (twin, copy, or plain read) of the same rounds. Where another
         user of the memory, a slower clock or an unlucky placement slows the machine, it slows
         both: this is the view whose launches could be exchanged between two runs of one build,
         also an hour apart, and so the one that is tested.
SECONDS  as they are. All points of a launch share what the launch met, and all launches of a run
         what the run met: they tell runs apart though the build is the same. But a change that is
         real shows here too, once what moved the witness as well is taken off.
CYCLES   the time in cycles of the run's own clock probe: a core-bound point on a slower clock takes
         as many.
FLOPS    the time against the run's own FMA probe, likewise: where another thread shares the core.
WITNESS  not of the point: the seconds of its witness. They say how the machine was while the point
         was measured.
MACHINE  nor is this: what the witnesses of all points on the same CPUs say together, of caches or
         of memory.
CEILING  nor is this: the time of a byte of the run's own ceiling, which was measured at another
         time.

The core roof is no view: it is the point's own kernel, and changes with it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from kvbench.analysis.measured.ceilings import REACH, held_against, value
from kvbench.analysis.measured.rates import PointRates, measured
from kvbench.analysis.measured.speeds import at_speed
from kvbench.grouping import grouped
from kvbench.model import Point, Probe, Record

BESIDE, SECONDS, CYCLES, FLOPS = "beside its witness", "in seconds", "in cycles", "against FMA"
WITNESS, MACHINE, CEILING = "its witness", "witnesses like its own", "the run's own ceiling"
OF_MACHINE = (MACHINE, WITNESS)  # what says how far the machine moved; without them CEILING does
PRIMARY = (BESIDE, SECONDS)  # what is tested: the first that there is

Series = Mapping[int, float]  # by launch
Both = tuple[Series, Series]  # of base and of head
Views = dict[str, Both]
Launches = Mapping[int, PointRates]
Probes = Mapping[Probe, Both]  # that both runs have, as views are

_OF_CORE = {CYCLES: "clock", FLOPS: "flops"}


def by_launch(records: Iterable[Record]) -> dict[int, PointRates]:
    """Records of one point."""
    launches = grouped((each.launch, each) for each in at_speed(records) if each.complete)
    return {launch: measured(own) for launch, own in launches.items()}


def of_point(
    point: Point, footprint: float, base: Launches, head: Launches, probes: Probes
) -> Views:
    """`footprint`: bytes of lines, of all layers."""
    seconds = _both(base, head, lambda each: math.log(each.seconds["point"].median))
    found: Views = {SECONDS: seconds}
    if witness := _witness(base, head):
        one, other = (
            {launch: each for launch, each in side.items() if witness in each.shares}
            for side in (base, head)
        )
        found[BESIDE] = _both(one, other, lambda each: -math.log(each.shares[witness].median))
        found[WITNESS] = _less(seconds, found[BESIDE])
    here = [
        probe
        for probe in probes
        if (probe.isa, sorted(probe.cpus)) == (point.isa, sorted(point.cpus))
    ]
    for view, op in _OF_CORE.items():
        if own := next((probes[probe] for probe in here if probe.op == op), None):
            found[view] = _less(seconds, own)
    if roof := _ceiling(point, footprint, {probe: probes[probe] for probe in here}):
        found[CEILING] = roof
    return {view: both for view, both in found.items() if all(both)}


def of_family(members: Sequence[Views]) -> Views:
    """Those that can be tested as the others are."""
    tested = next(view for view in PRIMARY if any(view in views for views in members))
    alike = [views for views in members if tested in views]
    names = dict.fromkeys(view for views in alike for view in views)
    return {view: together([views[view] for views in alike if view in views]) for view in names}


def together(members: Sequence[Both]) -> Both:
    """The median over members in each launch, each about its middle: that of the launches of both
    sides, so that which side a launch belongs to has no part in it.
    """
    base, head = dict[int, list[float]](), dict[int, list[float]]()
    for both in members:
        middle = median(own for side in both for own in side.values())
        for side, found in zip(both, (base, head), strict=True):
            for launch, own in side.items():
                found.setdefault(launch, []).append(own - middle)
    return _both(base, head, median)


def _both(
    base: Mapping[int, object], head: Mapping[int, object], log: Callable[..., float]
) -> Both:
    return {launch: log(each) for launch, each in base.items()}, {
        launch: log(each) for launch, each in head.items()
    }


def _less(both: Both, others: Both) -> Both:
    """In launches that have both."""
    base, head = (
        {launch: value - other[launch] for launch, value in series.items() if launch in other}
        for series, other in zip(both, others, strict=True)
    )
    return base, head


def _witness(base: Launches, head: Launches) -> str | None:
    """The fastest form that both runs have, over both: the same on either side."""
    every = [*base.values(), *head.values()]
    common = set.intersection(
        *({name for each in side.values() for name in each.witnesses} for side in (base, head))
    )
    rates = {
        name: median(each.rates[name].median for each in every if name in each.shares)
        for name in common
    }
    return max(sorted(rates), key=rates.__getitem__, default=None)


def probed(base: Iterable[Record], head: Iterable[Record]) -> Probes:
    """What both runs measured of the machine itself."""
    ours, theirs = _costs(base), _costs(head)
    return {probe: (own, theirs[probe]) for probe, own in ours.items() if probe in theirs}


def _costs(records: Iterable[Record]) -> dict[Probe, Series]:
    """Logarithms of the time of what a probe counts. What it is said not to have done at all has
    none.
    """
    values = grouped(
        ((record.point, record.launch), value(record, sample))
        for record in records
        if isinstance(record.point, Probe) and record.complete
        for sample in record.samples
        if sample.program == "point"
    )
    rates = grouped((probe, (launch, median(own))) for (probe, launch), own in values.items())
    return {
        probe: {launch: -math.log(rate) for launch, rate in own}
        for probe, own in rates.items()
        if min(rate for _, rate in own) > 0
    }


def _ceiling(point: Point, footprint: float, probes: Probes) -> Both | None:
    """Reads or copies, of the nearest footprint: the fastest of them, over both runs."""
    ops = held_against(point)
    alike = {
        probe: both
        for probe, both in probes.items()
        if probe.op in ops and probe.pages == point.pages
    }
    if not alike:
        return None
    # it leaves all caches behind, as what is larger or evicted does
    most = max(probe.bytes for probe in alike)
    wanted = most if point.residency == "evicted" else min(footprint, most)
    away = {probe: abs(math.log2(probe.bytes / wanted)) for probe in alike}
    near = [
        both
        for probe, both in alike.items()
        if away[probe] == min(away.values()) <= math.log2(REACH)
    ]
    return min(
        near, key=lambda both: median(cost for side in both for cost in side.values()), default=None
    )
