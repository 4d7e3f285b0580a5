"""The verdicts of a gate, and what it says as a whole."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from kvbench.analysis.chances import as_share
from kvbench.analysis.compare.judge import incomparable
from kvbench.analysis.compare.whole import verdict, worst_first
from kvbench.analysis.paired.limits import LIMITS
from kvbench.analysis.paired.series import Duel
from kvbench.analysis.paired.signs import COVERAGE
from kvbench.analysis.paired.stages import SLOWER, Row, Screened, again, alarmed
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, IMPROVEMENT, INCONCLUSIVE, REGRESSION
from kvbench.units import counted, gbps


@dataclass(frozen=True, slots=True)
class Course:
    """What a gate has measured. `screen`: its launches over all points, with those that were added to it.

    `fresh`: launches for candidates alone, where there were any; `confirmed`: by name, whether they showed it again.
    `controls`: points that had base on both sides of these launches. `launches` of a stage, as planned.
    """

    screen: Screened
    fresh: Screened | None
    confirmed: Mapping[str, bool]
    controls: Screened | None
    launches: int

    @property
    def failed(self) -> tuple[Duel, ...]:
        """By fresh launches, though the screening had nothing against them; or against itself, as a control."""
        return tuple(d for each in (self.fresh, self.controls) if each for d in each.lost if d.fault)


def whole(
    course: Course, base: str, head: str, machine: str, created: str, missing: Iterable[str], notes: Iterable[str]
) -> Comparison:
    """`missing`: points that head lacks, so that nothing can be fine; and `notes` on how the others were measured."""
    missing = tuple(missing)
    lost = {duel.point.name: duel for duel in (*course.screen.lost, *course.failed)}
    rows = [row for row in course.screen.points if row.name not in lost]
    points = [*(_judged(row, course, len(course.screen.points)) for row in rows), *map(_lost, lost.values())]
    families = [_judged(row, course, len(course.screen.families)) for row in course.screen.families]
    alarms = alarmed(course.controls) if course.controls else []
    word = CONTAMINATED if alarms else verdict(points, families)
    if missing and word in (EQUIVALENT, IMPROVEMENT):
        word = INCONCLUSIVE
    return Comparison(
        command="gate",
        base=base,
        head=head,
        machine=machine,
        created=created,
        verdict=word,
        points=worst_first(points),
        families=worst_first(families),
        missing=(*missing, *(f"{name}: {duel.fault or duel.few}" for name, duel in lost.items())),
        notes=(*notes, *_notes(course, alarms, points)),
    )


def _lost(duel: Duel) -> Judged:
    """What failed cannot be judged; what was disturbed too often is not clear."""
    found = incomparable(duel.point.name, "", duel.fault or duel.few)
    return found if duel.fault else replace(found, verdict=INCONCLUSIVE)


# ---- one row ---------------------------------------------------------------------------------------------------------


def _judged(row: Row, course: Course, tests: int) -> Judged:
    word, note = _word(row, course)
    up = row.found.estimate >= 0
    rates = [gbps(row.members[0].compulsory, each) for each in row.members[0].seconds]
    alone = len(row.members) == 1 and row.name == row.members[0].point.name
    return Judged(
        row.name,
        row.family,
        word,
        *(as_share(each) for each in (row.found.estimate, row.found.low, row.found.high)),
        p=float(row.found.slower if up else row.found.faster),
        q=row.q["slower" if up else "faster"],
        detectable=detectable(row, tests, course.launches),
        base_gbps=rates[0] if alone else None,
        head_gbps=rates[1] if alone else None,
        base_seconds=row.members[0].seconds[0] if alone else None,
        head_seconds=row.members[0].seconds[1] if alone else None,
        launches=row.found.launches,
        note=note,
    )


def _word(row: Row, course: Course) -> tuple[str, str]:
    if row.candidate:
        if not course.confirmed.get(row.name):
            return INCONCLUSIVE, f"{row.candidate} at first; not confirmed by {_again(row, course)}"
        if share := _moved(row):
            return CONTAMINATED, f"{row.candidate}, but so was what no build touches, beside it: by {share:+.1%}"
        word = REGRESSION if row.candidate == SLOWER else IMPROVEMENT
        return word, f"confirmed by {_again(row, course)}"
    if row.same:
        return EQUIVALENT, ""
    few = "" if row.found.low == row.found.low else f"{row.found.launches[0]} launches are too few to show any change"
    return INCONCLUSIVE, few


def _again(row: Row, course: Course) -> str:
    found = again(course.fresh).get(row.key) if course.fresh else None
    if found is None:
        return "fresh launches"
    low, high = (as_share(each) for each in (found.found.low, found.found.high))
    around = "" if low is None or high is None else f" ({low:+.1%} to {high:+.1%})"
    return f"{found.found.launches[0]} fresh launches: {as_share(found.found.estimate):+.1%}{around} of base's time"


def _moved(row: Row) -> float:
    """How far its witnesses moved the same way, where that is no chance and no small part of the effect; else 0."""
    own, beside = row.found, row.beside
    if row.candidate != SLOWER:
        own, beside = own.mirrored(), beside.mirrored()
    if beside.slower <= LIMITS.alarm and beside.estimate >= LIMITS.again * own.estimate:
        return math.expm1(float(row.beside.estimate))
    return 0.0


def detectable(row: Row, tests: int, launches: int) -> float | None:
    """The smallest slowdown, alone among its like, that would have been confirmed as a regression with LIMITS.power:
    both by those that screened it and by so many fresh launches."""
    power = math.sqrt(LIMITS.power)
    screen = row.found.detectable(LIMITS.screen / tests, power, math.log1p(row.smallest))
    confirm = row.found.detectable(LIMITS.confirm, power, math.log1p(LIMITS.again * row.smallest), launches)
    return as_share(float(np.maximum(screen, confirm)))  # which is NaN where either is


# ---- sentences -------------------------------------------------------------------------------------------------------


def _notes(course: Course, alarms: Sequence[str], points: Sequence[Judged]) -> Iterator[str]:
    if alarms:
        seen = counted(len(alarms), "point")
        yield f"controls alarmed: base against a second copy of itself seems to have changed at {seen}"
    if not course.screen.points:
        return
    own = [row.members[0] for row in course.screen.points]
    yield (
        "the effect is the share of base's time by which head takes longer, both measured in turn in one process on the "
        f"same memory; a pair's noise is {median(duel.noise for duel in own):.1%} (standard deviation, from the middle half "
        f"of a launch's pairs; median of points); {sum(duel.dropped for duel in own) / len(own):.0%} of the pairs were "
        "disturbed and are left out"
    )
    yield (
        f"tested by launches: exact signed ranks; candidates by Benjamini-Hochberg (q) at {LIMITS.screen:.0%}, confirmed "
        f"by fresh launches (Hochberg, {LIMITS.confirm:.0%}); smallest effect that is called a change, as a share of base's "
        f"time: {LIMITS.point:.0%} for a point, {LIMITS.family:.0%} for a family; the same: the {COVERAGE:.0%} interval "
        f"lies within {LIMITS.same:.0%} of base's time"
    )
    if seen := [row.detectable for row in points if row.detectable is not None]:
        yield (
            f"a slowdown of one point alone would have been seen, {LIMITS.power:.0%} of the time, from {min(seen):.1%} to "
            f"{max(seen):.1%} of base's time on, half of them from {median(seen):.1%}"
        )
