"""Views of a point's time. A view is a series over launches, in logarithms, so that differences are
ratios.

Views of the point:

BESIDE   its time over that of its witness (twin, copy, or plain read) in the same rounds. Another
         user of the memory, a slower clock or an unlucky placement slows both. So launches in this
         view could be exchanged between two runs of one build, even an hour apart. This view is
         tested.
SECONDS  its time. All points of a launch meet the same conditions, and so do all launches of a run:
         seconds can differ between runs of the same build. But a real change also shows here, after
         what moved the witness as well is subtracted.
CYCLES   its time in cycles, from the run's clock probe: a core-bound point takes as many cycles on
         a slower clock.
FLOPS    its time relative to the run's FMA probe: corrects for another thread on the same core.

Views of the machine:

WITNESS  the seconds of the point's witness: the state of the machine while the point was measured.
MACHINE  the witnesses of all points on the same CPUs together, for caches or for memory.
CEILING  the time per byte of the run's own ceiling, which was measured at another time.

The core roof is not used as a view: it is the point's own kernel, and changes with it.
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
OF_MACHINE = (MACHINE, WITNESS)  # show how far the machine changed; without them CEILING does
PRIMARY = (BESIDE, SECONDS)  # the first of these that exists is tested

Series = Mapping[int, float]  # by launch
Both = tuple[Series, Series]  # of base and of head
Views = dict[str, Both]
Launches = Mapping[int, PointRates]
Probes = Mapping[Probe, Both]  # probes that both runs have, in the form of views

_OF_CORE = {CYCLES: "clock", FLOPS: "flops"}


def by_launch(records: Iterable[Record]) -> dict[int, PointRates]:
    """The rates of one point by launch, from its records."""
    launches = grouped((each.launch, each) for each in at_speed(records) if each.complete)
    return {launch: measured(own) for launch, own in launches.items()}


def of_point(
    point: Point, footprint: float, base: Launches, head: Launches, probes: Probes
) -> Views:
    """All views of a point. `footprint`: bytes of cache lines in all layers."""
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
    """The views of a family, from the members that have the tested view."""
    tested = next(view for view in PRIMARY if any(view in views for views in members))
    alike = [views for views in members if tested in views]
    names = dict.fromkeys(view for views in alike for view in views)
    return {view: together([views[view] for views in alike if view in views]) for view in names}


def together(members: Sequence[Both]) -> Both:
    """The median over members in each launch. From each member the median over the launches of both
    sides is subtracted first, so that both sides are treated alike.
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
    """Each side of `both` minus that of `others`, by common launch."""
    base, head = (
        {launch: value - other[launch] for launch, value in series.items() if launch in other}
        for series, other in zip(both, others, strict=True)
    )
    return base, head


def _witness(base: Launches, head: Launches) -> str | None:
    """The form of the witness that both runs have and that is fastest over both."""
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
    """The probes that both runs measured."""
    ours, theirs = _costs(base), _costs(head)
    return {probe: (own, theirs[probe]) for probe, own in ours.items() if probe in theirs}


def _costs(records: Iterable[Record]) -> dict[Probe, Series]:
    """For each probe, logarithms of the time per byte or operation, by launch. Probes with a rate
    of 0 are left out.
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
    """The time per byte of the fastest reads or copies with the nearest footprint, over both
    runs.
    """
    ops = held_against(point)
    alike = {
        probe: both
        for probe, both in probes.items()
        if probe.op in ops and probe.pages == point.pages
    }
    if not alike:
        return None
    # the largest probe exceeds all caches, as do larger and evicted points
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
