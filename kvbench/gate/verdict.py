"""The verdicts of a gate: of each row, and overall."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from kvbench.analysis.judge import (
    COVERAGE,
    LIMITS,
    SLOWER,
    as_share,
    incomparable,
    whole,
    worst_first,
)
from kvbench.gate.rivals import Rivals
from kvbench.gate.rows import SCREEN, Screened, StageRow, alarmed, confirmed, detectable, moved
from kvbench.model import Comparison
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
)
from kvbench.units import counted


@dataclass(frozen=True, slots=True)
class Course:
    """What a gate has measured. `screen`: launches over all points, with added ones. `fresh`:
    launches for candidates only, if any. `controls`: points with base on both sides, in the fresh
    launches. `launches`: of a stage.
    """

    screen: Screened
    fresh: Screened | None
    controls: Screened | None
    launches: int


def judged(
    course: Course,
    rivals: Rivals,
    machine: str,
    created: str,
    missing: Iterable[str],
    notes: Iterable[str],
) -> Comparison:
    """Judge a course. `missing`: points that head lacks; with any, the verdict cannot be good.
    `notes`: on how the others were measured.
    """
    missing, screen = tuple(missing), course.screen
    later = (
        duel for each in (course.fresh, course.controls) if each for duel in each.lost if duel.fault
    )
    lost = {duel.point.name: duel for duel in (*screen.lost, *later)}
    sure = confirmed(screen.candidates, course.fresh) if course.fresh else {}
    points, families = (
        [
            row.judged(*_word(row, course, sure), detectable(row, len(rows), course.launches))
            for row in rows
            if row.name not in lost
        ]
        for rows in (screen.points, screen.families)
    )
    for name, duel in lost.items():
        points.append(
            incomparable(
                name, "", duel.fault or duel.few, NOT_COMPARABLE if duel.fault else INCONCLUSIVE
            )
        )
    alarms = alarmed(course.controls) if course.controls else []
    word = CONTAMINATED if alarms else whole(points, families)
    if missing and word in (EQUIVALENT, IMPROVEMENT):
        word = INCONCLUSIVE
    lacking = (*missing, *(f"{name}: {duel.fault or duel.few}" for name, duel in lost.items()))
    said = (
        word,
        worst_first(points),
        worst_first(families),
        lacking,
        (*notes, *_notes(course, rivals.how, alarms)),
    )
    return Comparison("gate", rivals.base, rivals.head, machine, created, *said)


def _word(row: StageRow, course: Course, confirmed: Mapping[str, bool]) -> tuple[str, str]:
    if not row.candidate:
        small = (
            f"less than the {row.smallest:.0%} that counts, though all of its interval is"
            f" {row.found.way}"
        )
        under = row.found.way and row.found.share < row.smallest
        return (EQUIVALENT if row.found.same else INCONCLUSIVE), small if under else ""
    again, by = course.fresh.again(row) if course.fresh else None, "fresh launches"
    if again:
        effect, low, high = map(as_share, again.found[:3])
        around = f" ({low:+.1%} to {high:+.1%})" if again.found.enclosed else ""
        by = f"{again.found.launches[0]} fresh launches: {effect:+.1%}{around} of base's time"
    if not confirmed.get(row.name):
        return INCONCLUSIVE, f"{row.candidate} at first; not confirmed by {by}"
    if share := moved(row):
        return (
            CONTAMINATED,
            f"{row.candidate}, but so was its witness, which no build touches: by {share:+.1%}",
        )
    return REGRESSION if row.candidate == SLOWER else IMPROVEMENT, f"confirmed by {by}"


def _notes(course: Course, how: str, alarms: Sequence[str]) -> Iterator[str]:
    if alarms:
        seen = counted(len(alarms), "point")
        yield (f"controls alarmed: base, compared with itself, seems to have changed at {seen}")
    if not course.screen.points:
        return
    own = [row.members[0] for row in course.screen.points]
    noise, dropped = (
        median(duel.noise for duel in own),
        sum(duel.dropped for duel in own) / len(own),
    )
    yield (
        "the effect is the share of base's time by which head takes longer, both measured in turn"
        f" {how}; a pair's noise is {noise:.1%} (standard deviation,"
        f" from the middle half of a launch's pairs; median of points); {dropped:.0%} of the pairs"
        " were disturbed and are left out"
    )
    yield (
        "tested by launches: exact signed ranks; candidates by Benjamini-Hochberg (q) at"
        f" {SCREEN:.0%}, confirmed by fresh launches (Hochberg, {LIMITS.rate:.0%}); smallest effect"
        f" that is called a change, as a share of base's time: {LIMITS.point:.0%} for a point,"
        f" {LIMITS.family:.0%} for a family; the same: the {COVERAGE:.0%} interval lies within"
        f" {LIMITS.same:.0%} of base's time"
    )
