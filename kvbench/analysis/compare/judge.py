"""The verdict on one point or family, from its shifts in every view.

REGRESSION needs all of these, IMPROVEMENT the same mirrored:
  1. slower beside its witness, at a false-discovery rate of LIMITS.rate among all points, or among all families;
  2. slower in every other view that there is: in seconds, in cycles of the core's clock, and against its FMA rate; each
     at a one-sided chance of LIMITS.agree. What only one view shows can be the machine's doing: a memory that got
     faster makes a core-bound kernel look slower beside its twin, and a slower clock does so to all that is core-bound.
     They are taken less what the point shares with its witness from launch to launch;
  3. in all views by no less than the smallest effect that is called a change, a share of base's time either way;
  4. by more than the machine changed meanwhile: LIMITS.told of how far its own witness moved from run to run, or all
     on these CPUs did, whichever is more, either way; or, without witnesses, the run's own ceiling. Else the word is
     CONTAMINATED.
EQUIVALENT: the interval lies within LIMITS.same on both sides, and the seconds do not say otherwise, or the run's own
ceiling moved with them. All else is INCONCLUSIVE.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median

import numpy as np

from kvbench.analysis.chances import as_share, q_values
from kvbench.analysis.compare.limits import LIMITS
from kvbench.analysis.compare.ranks import Shift, shift
from kvbench.analysis.compare.views import CEILING, OF_MACHINE, PRIMARY, SECONDS, Views, corrected
from kvbench.model import Judged
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, IMPROVEMENT, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION

_normal = NormalDist().inv_cdf


@dataclass(frozen=True, slots=True)
class Tested:
    """A point or family, its shifts by view, and the view that is tested. `smallest`: effect that is called a change."""

    name: str
    family: str
    shifts: Mapping[str, Shift]
    primary: str
    smallest: float
    told: float  # see LIMITS
    gbps: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None

    @property
    def shift(self) -> Shift:
        return self.shifts[self.primary]

    @property
    def others(self) -> dict[str, Shift]:
        """What must agree."""
        return {view: each for view, each in self.shifts.items() if view not in (self.primary, *OF_MACHINE, CEILING)}

    @property
    def moved(self) -> tuple[str, float]:
        """What tells of the machine, and how far that has moved from base to head at most."""
        there = [view for view in OF_MACHINE if view in self.shifts] or [
            view for view in (CEILING,) if view in self.shifts
        ]
        found = {view: float(self.shifts[view].estimate) for view in there}
        return max(found.items(), key=lambda each: abs(each[1]), default=("", 0.0))


def tested(name: str, family: str, views: Views, smallest: float, told: float = LIMITS.told, **facts: object) -> Tested:
    """`views`: one of PRIMARY at least. `facts`: the rates and seconds of a point."""
    primary = next(view for view in PRIMARY if view in views)
    looked = corrected(views).items()
    shifts = {view: shift(*(np.array(list(side.values())) for side in both)) for view, both in looked}
    return Tested(name, family, shifts, primary, smallest, told, **facts)


def judged(rows: Sequence[Tested]) -> list[Judged]:
    """All of one level, corrected together."""
    if not rows:
        return []
    slower, faster = (q_values([float(getattr(row.shift, way)) for row in rows]) for way in ("slower", "faster"))
    alpha = LIMITS.rate / len(rows)
    return [_judged(row, s, f, alpha) for row, s, f in zip(rows, slower, faster, strict=True)]


def incomparable(name: str, family: str, why: str) -> Judged:
    return Judged(name, family, NOT_COMPARABLE, *[None] * 10, launches=(0, 0), note=why)


def middle(series: Mapping[int, float]) -> float:
    """Of logarithms, back as they were."""
    return math.exp(median(series.values()))


def _judged(row: Tested, slower: float, faster: float, alpha: float) -> Judged:
    found = row.shift
    up = found.estimate >= 0
    verdict, note = _verdict(row, slower, faster)
    effects = [as_share(each) for each in (found.estimate, found.low, found.high)]
    seen = detectable(row, alpha)
    if verdict == INCONCLUSIVE and not note and seen is None:
        note = f"launches are too few to show any change: {found.launches[0]} of base and {found.launches[1]} of head"
    return Judged(
        row.name,
        row.family,
        verdict,
        *effects,
        p=float(found.slower if up else found.faster),
        q=slower if up else faster,
        detectable=seen,
        base_gbps=row.gbps and row.gbps[0],
        head_gbps=row.gbps and row.gbps[1],
        base_seconds=row.seconds and row.seconds[0],
        head_seconds=row.seconds and row.seconds[1],
        launches=found.launches,
        note=note,
    )


# ---- the word --------------------------------------------------------------------------------------------------------


def _verdict(row: Tested, slower: float, faster: float) -> tuple[str, str]:
    word, note = _changed(row, slower, "slower")
    if not word and not note:
        shifts = {view: each.mirrored() for view, each in row.shifts.items()}
        turned = replace(row, shifts=shifts, smallest=_turned(row.smallest))
        word, note = _changed(turned, faster, "faster")
        word = IMPROVEMENT if word == REGRESSION else word
    return (word, note) if word else _same(row, note)


def _turned(share: float) -> float:
    """A share of base's time that head takes less, as the share of head's that base takes more."""
    return share / (1 - share) if share < 1 else math.inf


def _changed(row: Tested, chance: float, way: str) -> tuple[str, str]:
    """As if `way` were slower: the word or "", and what spoke against a change that the tested view shows."""
    found = row.shift
    if not (chance <= LIMITS.rate and math.expm1(found.estimate) >= row.smallest):
        return "", ""
    if doubts := [view for view, each in row.others.items() if not _agrees(each, row.smallest)]:
        return "", f"{way} {row.primary}, which is not seen {' nor '.join(doubts)}"
    if (away := row.told * abs(row.moved[1])) > found.estimate:
        return (
            CONTAMINATED,
            f"{way} {row.primary}, but {_machine(row, way)}: less than {as_share(away):.1%} is not told from it",
        )
    alone = "" if row.primary != SECONDS else "no witness was measured beside it: judged on its seconds alone"
    return REGRESSION, alone


def _agrees(found: Shift, smallest: float) -> bool:
    return bool(found.slower <= LIMITS.agree and math.expm1(found.estimate) >= smallest)


def _machine(row: Tested, way: str) -> str:
    view, moved = row.moved
    return f"the machine changed: {view} took {math.expm1(moved if way == 'slower' else -moved):+.1%} of base's time"


def _surely(found: Shift | None) -> float:
    """0 where the interval does not say that it moved."""
    return float(found.estimate) if found and (found.low > 0 or found.high < 0) else 0.0


def _same(row: Tested, doubt: str) -> tuple[str, str]:
    if doubt or not _within(row.shift):
        return INCONCLUSIVE, doubt
    seconds = row.others.get(SECONDS)
    if not seconds or not _beyond(seconds):
        return EQUIVALENT, ""
    took = f"its seconds moved by {_signed(seconds)} of base's, as its witness's did"
    ceiling = row.shifts.get(CEILING)
    if ceiling and _surely(ceiling) * seconds.estimate > 0:
        return EQUIVALENT, f"{took}, and the run's own ceiling moved by {_signed(ceiling)} of base's time"
    return INCONCLUSIVE, f"{took}, and the run's own ceilings do not say that the machine changed"


def _within(found: Shift) -> bool:
    return bool(-LIMITS.same < math.expm1(found.low) and math.expm1(found.high) < LIMITS.same)


def _beyond(found: Shift) -> bool:
    return bool(math.expm1(found.low) > LIMITS.same or math.expm1(found.high) < -LIMITS.same)


def _signed(found: Shift) -> str:
    return f"{math.expm1(found.estimate):+.1%}"


# ---- what would have been seen ---------------------------------------------------------------------------------------


def detectable(row: Tested, alpha: float) -> float | None:
    """The smallest slowdown, alone among its like, that would have been called a regression with LIMITS.power: were the
    launches normal, with the noise that they have. None where no slowdown could."""
    seen, found = _normal(LIMITS.power), row.shift
    needed = [found.detectable(alpha, LIMITS.power)]
    needed += [each.detectable(LIMITS.agree, LIMITS.power) for each in row.others.values()]
    needed += [math.log1p(row.smallest) + seen * each.error for each in (found, *row.others.values())]
    needed.append(row.told * abs(row.moved[1]) + seen * found.error)
    return as_share(max(needed)) if not any(map(math.isnan, needed)) else None
