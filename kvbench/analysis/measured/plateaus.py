"""Find the plateaus of a staircase, which is the rate of one walk over growing footprints; and the
size that each cache level really has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated

import numpy as np

from kvbench.intervals import scatter
from kvbench.model import Machine
from kvbench.model.annotated import about
from kvbench.regime import levels
from kvbench.units import size

APART = 1.10  # levels whose rates are within this ratio cannot be told apart
TRUSTED = (0.6, 1.5)  # effective over declared size: within this range the declaration is kept
# smallest step at the end of a cache: memory has smaller steps, such as address translation
MEMORY_STEP = 1.4

# Costs of a segmentation, in units of a cell's expected squared deviation.
# for each plateau: low enough that two equal cells form one, high enough to avoid needless ones
_PLATEAU = 12.0
_SKIPPED = 8.0  # for a cell outside plateaus: less than a misfit, more than noise explains
_MISFIT = 18.0  # the most for a cell on a plateau: one wild cell does not split it
# least and most standard deviation of log rates: plateaus slope, and steps are not noise
_NOISE = (0.05, 0.08)


@dataclass(frozen=True, slots=True)
class Plateau:
    """A range of at least two neighbouring footprints that are walked equally fast."""

    low_bytes: Annotated[float, about("bytes: smallest footprint on it")]
    high_bytes: Annotated[float, about("bytes: largest footprint on it")]
    gbps: Annotated[float, about("GB/s: plain reads on it")]


@dataclass(frozen=True, slots=True)
class Capacity:
    """The size that one cache of a level really has."""

    level: Annotated[int, about("level of the cache")]
    declared: Annotated[int, about("bytes: one cache, as declared")]
    effective: Annotated[
        float | None, about("bytes: as seen by plain reads; null if unknown, as are low and high")
    ]
    low: Annotated[float | None, about("bytes: the footprint before the step")]
    high: Annotated[float | None, about("bytes: the footprint after the step")]
    note: Annotated[str, about("a warning, or why the size is unknown; else empty")]


def plateaus(footprints: Sequence[float], rates: Sequence[float]) -> tuple[Plateau, ...]:
    """The plateaus by ascending footprint. Cells of a transition belong to no plateau."""
    sizes, logs = _sorted(footprints, rates)
    return tuple(
        Plateau(
            float(sizes[segment[0]]), float(sizes[segment[1]]), float(np.exp(_level(logs, segment)))
        )
        for segment in _segments(logs)
    )


def capacities(
    footprints: Sequence[float], rates: Sequence[float], machine: Machine, cpus: Sequence[int]
) -> tuple[Capacity, ...]:
    """The capacity of one cache of every declared level, from a staircase with one thread on each
    of `cpus`. A level ends where the rate crosses the geometric mean of its plateau and the next.
    """
    sizes, logs = _sorted(footprints, rates)
    caches = levels(machine, cpus)
    totals = [float(sum(cache.size for cache in own)) for own in caches.values()]
    owners = _owners(_segments(logs), totals, sizes, logs)
    found = []
    for place, (level, own) in enumerate(caches.items()):
        declared, end = (
            int(totals[place] / len(own)),
            _end(place, f"L{level}", owners, totals, sizes, logs),
        )
        if isinstance(end, str):
            found.append(Capacity(level, declared, None, None, None, f"unknown: {end}"))
            continue
        low, effective, high = (bytes_ / len(own) for bytes_ in end)
        seen = Capacity(level, declared, effective, low, high, "")
        if not _trusted(seen):
            why = "it is shared with others, or the declaration is wrong"
            if effective >= declared:
                why = "the declaration is wrong, as virtual machines' often are"
            told = f"L{level} declares {size(declared)} but serves about {size(effective)}: {why}"
            seen = replace(seen, note=told)
        found.append(seen)
    return tuple(found)


def corrections(capacities: Sequence[Capacity]) -> Mapping[int, float]:
    """Sizes that replace contradicted declared sizes, by level. Only the last level is corrected,
    which others share, and only downwards: the footprints follow the declared sizes and do not
    reach past a larger cache.
    """
    last = max((c.level for c in capacities), default=0)
    return {
        c.level: c.effective
        for c in capacities
        if c.level == last and not _trusted(c) and c.effective and c.effective < c.declared
    }


Segment = tuple[int, int]  # first and last cell


def _sorted(footprints: Sequence[float], rates: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Footprints in ascending order, and the logarithms of their rates."""
    order = np.argsort(footprints, kind="stable")
    return np.asarray(footprints, float)[order], np.log(np.asarray(rates, float)[order])


def _segments(logs: np.ndarray) -> list[Segment]:
    """The cheapest cover of the cells with plateaus and gaps. best[n] is the cost for the first n
    cells.
    """
    variance = float(np.clip(scatter(logs), *_NOISE)) ** 2
    best, back = [0.0], [0]
    for end in range(1, len(logs) + 1):
        cost, start = best[end - 1] + _SKIPPED, end - 1
        for first in range(end - 1):
            cells = logs[first:end]
            misfit = np.minimum((cells - np.median(cells)) ** 2 / variance, _MISFIT).sum()
            if best[first] + _PLATEAU + misfit < cost:
                cost, start = best[first] + _PLATEAU + misfit, first
        best.append(cost)
        back.append(start)
    found, end = [], len(logs)
    while end > 0:
        if end - back[end] > 1:
            found.append((back[end], end - 1))
        end = back[end]
    return found[::-1]


def _owners(
    segments: Sequence[Segment], totals: Sequence[float], sizes: np.ndarray, logs: np.ndarray
) -> list[list[Segment]]:
    """The plateaus of each level, and last those of memory.

    A level ends at its declared size at the latest. There is one exception: a level without a
    plateau takes the first of two plateaus behind it if that is clearly faster than the second, and
    begins well within the declared size. Then the level was declared too small.
    """
    owners: list[list[Segment]] = [[] for _ in (*totals, inf)]
    for first, last in segments:
        fits = (place for place, total in enumerate(totals) if sizes[last] <= TRUSTED[1] * total)
        owners[next(fits, len(totals))].append((first, last))
    for place, total in enumerate(totals):
        behind = owners[place + 1]
        if owners[place] or len(behind) < 2 or sizes[behind[0][0]] > total / 2:
            continue
        if _level(logs, behind[0]) - _level(logs, behind[1]) >= np.log(MEMORY_STEP):
            owners[place].append(behind.pop(0))
    return owners


def _level(logs: np.ndarray, segment: Segment) -> float:
    """The logarithm of a plateau's rate."""
    return float(np.median(logs[segment[0] : segment[1] + 1]))


def _end(
    place: int,
    level: str,
    owners: list[list[Segment]],
    totals: Sequence[float],
    sizes: np.ndarray,
    logs: np.ndarray,
) -> tuple[float, float, float] | str:
    """Where a level ends: the footprint before, the interpolated end, the footprint after. Or why
    that is unknown.
    """
    behind = [segment for owned in owners[place + 1 :] for segment in owned]
    if not owners[place]:
        return f"no two footprints show a plateau of {level} apart from its neighbours'"
    if not behind:
        return f"no plateau was seen behind that of {level}"
    # a stretch of slope may look like a short plateau
    own = max(owners[place], key=lambda segment: segment[1] - segment[0])
    last, first = own[1], behind[0][0]
    if not owners[place + 1] and sizes[first] > totals[place + 1]:
        return (
            f"{level} may end anywhere before {size(sizes[first])}: the level behind it shows no"
            " plateau"
        )
    here, there = _level(logs, own), _level(logs, behind[0])
    if here - there < np.log(APART):
        return (
            f"{level} and what lies behind it cannot be told apart: {np.exp(here):.3g} and"
            f" {np.exp(there):.3g}"
        )
    falling = logs[last : first + 1]
    middle = (here + there) / 2
    if not falling[0] >= middle > falling[-1]:
        return f"{level} and what lies behind it do not differ clearly where they meet"
    after = int(np.argmax(falling < middle))  # the first, where a noisy transition has several
    x0, x1 = np.log2(sizes[last + after - 1]), np.log2(sizes[last + after])
    part = (falling[after - 1] - middle) / (falling[after - 1] - falling[after])
    return float(2**x0), float(2 ** (x0 + part * (x1 - x0))), float(2**x1)


def _trusted(seen: Capacity) -> bool:
    """Whether the declared size can be true: it lies between the two footprints, or close to where
    the rate falls.
    """
    least, most = TRUSTED
    if seen.effective is None or seen.low is None or seen.high is None:
        return True
    return seen.low <= seen.declared <= seen.high or least <= seen.effective / seen.declared <= most
