"""Ways to look at a point's time: a series of launches for each, as logarithms, so that differences are ratios.

BESIDE   over the time of its witness (twin or copy) of the same rounds. Where another user of the memory, a slower
         clock or an unlucky placement slows the machine, it slows both: this is the view whose launches could be
         exchanged between two runs of one build, also an hour apart, and so the one that is tested.
SECONDS  as they are. All points of a launch share what the launch met, and all launches of a run what the run met:
         they tell runs apart though the build is the same. But a change that is real shows here too, once what moved
         the witness as well is taken off.
CYCLES   the time in cycles of the run's own clock probe: a core-bound point on a slower clock takes as many.
FLOPS    the time against the run's own FMA probe, likewise: where another thread shares the core.
WITNESS  not of the point: the seconds of its witness. They say how the machine was while the point was measured.
MACHINE  nor is this: what the witnesses of all points on the same CPUs say together, of caches or of memory.
CEILING  nor is this: the time of a byte of the run's own ceiling, which was measured at another time.

The core roof is no view: it is the point's own kernel, and changes with it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from kvbench.analysis.compare.around import Around
from kvbench.analysis.compare.ranks import COVERAGE
from kvbench.analysis.launches import Measured, complete, measured
from kvbench.model import Point, Record

BESIDE, SECONDS, CYCLES, FLOPS = "beside its witness", "in seconds", "in cycles", "against FMA"
WITNESS, MACHINE, CEILING = "its witness", "witnesses like its own", "the run's own ceiling"
OF_MACHINE = (MACHINE, WITNESS)  # what says how far the machine moved; without them CEILING does
PRIMARY = (BESIDE, SECONDS)  # what is tested: the first that there is

Series = Mapping[int, float]  # by launch
Both = tuple[Series, Series]  # of base and of head
Views = dict[str, Both]
Launches = Mapping[int, Measured]

_OF_CORE = {CYCLES: "clock", FLOPS: "flops"}
_OWN = frozenset({SECONDS, CYCLES, FLOPS})
_FEW, _STILL = 6, 1e-6  # launches that show no slope; a witness that always took as long
_NO_WITNESS = frozenset({"point", "core"})  # programs


def by_launch(records: Iterable[Record]) -> dict[int, Measured]:
    """Records of one point."""
    launches: dict[int, list[Record]] = {}
    for record in records:
        if complete(record):
            launches.setdefault(record.launch, []).append(record)
    return {launch: measured(own) for launch, own in launches.items()}


def of_point(point: Point, footprint: float, base: Launches, head: Launches, around: Around) -> Views:
    """`footprint`: bytes of lines, of all layers."""
    seconds = _both(base, head, lambda each: math.log(each.seconds["point"].median))
    found: Views = {SECONDS: seconds}
    if witness := _witness(base, head):
        own = ({launch: each for launch, each in side.items() if witness in each.shares} for side in (base, head))
        found[BESIDE] = _both(*own, lambda each: -math.log(each.shares[witness].median))
        found[WITNESS] = tuple(map(_less, seconds, found[BESIDE]))
    for view, op in _OF_CORE.items():
        if rates := around.core(point, op):
            found[view] = tuple(map(_times, seconds, rates))
    if rates := around.ceiling(point, footprint):
        found[CEILING] = _both(*rates, lambda rate: -math.log(rate))
    return {view: both for view, both in found.items() if all(both)}


def of_family(members: Sequence[Views]) -> Views:
    """Those that can be tested as the others are."""
    tested = next(view for view in PRIMARY if any(view in views for views in members))
    alike = [views for views in members if tested in views]
    names = dict.fromkeys(view for views in alike for view in views)
    return {view: together([views[view] for views in alike if view in views]) for view in names}


def corrected(views: Views) -> Views:
    """With the point's own times less what its witness says of the machine: the witness's time, times the share of it
    that the point surely follows from launch to launch within the runs. A point that memory bounds follows, and is left
    without what a busier memory did to it; one that the core bounds does not, and is left as it is."""
    if not {WITNESS, SECONDS} <= views.keys():
        return views
    witness = views[WITNESS]
    share = _followed(views[SECONDS], witness)
    taken = {
        view: tuple(_less(a, b, share) for a, b in zip(views[view], witness, strict=True))
        for view in _OWN & views.keys()
    }
    return views | {view: both for view, both in taken.items() if all(both)}


def _less(series: Series, other: Series, share: float = 1.0) -> Series:
    return {launch: value - share * other[launch] for launch, value in series.items() if launch in other}


def _followed(point: Both, witness: Both) -> float:
    """From 0 to 1, the least slope of the point's time by the witness's that the launches allow (Theil and Sen), each
    about its run's middle, so that it is none of what lies between the runs. Noise of the witness can only lessen it.
    """
    from scipy.stats import theilslopes  # slow to load

    x, y = [], []
    for own, beside in zip(point, witness, strict=True):
        middles = median(own[launch] for launch in beside), median(beside.values())
        y += [own[launch] - middles[0] for launch in beside]
        x += [beside[launch] - middles[1] for launch in beside]
    if len(x) < _FEW or max(x) - min(x) < _STILL:
        return 0.0
    with np.errstate(invalid="ignore"):  # of values that are all alike it is no number
        least = float(theilslopes(y, x, alpha=COVERAGE).low_slope)
    return 0.0 if math.isnan(least) else min(1.0, max(0.0, least))


def together(members: Sequence[Both]) -> Both:
    """Of each launch the median over members, each about its middle: that of the launches of both sides, so that which
    side a launch belongs to has no part in it."""
    base, head = zip(*map(_centred, members), strict=True)
    return _medians(base), _medians(head)


def _centred(both: Both) -> Both:
    middle = median(value for side in both for value in side.values())
    base, head = ({launch: value - middle for launch, value in side.items()} for side in both)
    return base, head


def _medians(members: Iterable[Series]) -> Series:
    launches: dict[int, list[float]] = {}
    for series in members:
        for launch, value in series.items():
            launches.setdefault(launch, []).append(value)
    return {launch: median(values) for launch, values in launches.items()}


def _both(base: Mapping[int, object], head: Mapping[int, object], log: Callable[..., float]) -> Both:
    return {launch: log(each) for launch, each in base.items()}, {launch: log(each) for launch, each in head.items()}


def _times(seconds: Series, rates: Mapping[int, float]) -> Series:
    """Of launches that have both."""
    return {launch: own + math.log(rates[launch]) for launch, own in seconds.items() if launch in rates}


def _witness(base: Launches, head: Launches) -> str | None:
    """The fastest form that both runs have, over both: the same on either side."""
    common = set.intersection(*({name for each in side.values() for name in each.shares} for side in (base, head)))
    every = [*base.values(), *head.values()]
    rates = {
        name: median(each.rates[name].median for each in every if name in each.shares) for name in common - _NO_WITNESS
    }
    return max(sorted(rates), key=rates.__getitem__, default=None)
