"""What a comparison of two sides says: a verdict for each point, for each family, and for the whole.

An effect is the share by which head takes longer than base: 0.08 is 8 % more time than base's, −0.05 is 5 % less.
Every comparison starts from INCONCLUSIVE; the other words have to be earned."""

from __future__ import annotations

from dataclasses import dataclass

REGRESSION = "REGRESSION"  # head takes longer: significant beside all other tests, and by more than the smallest effect
IMPROVEMENT = "IMPROVEMENT"  # head takes less time, by the same rule
EQUIVALENT = "EQUIVALENT"  # the whole interval of the effect lies within the bounds that count as the same
INCONCLUSIVE = "INCONCLUSIVE"  # none of these: `detectable` says what would have been seen
CONTAMINATED = "CONTAMINATED"  # the two sides met different conditions: their times cannot be held against each other
NOT_COMPARABLE = "NOT_COMPARABLE"  # failed, wrong or measured on one side only

WORDS = (REGRESSION, CONTAMINATED, INCONCLUSIVE, NOT_COMPARABLE, EQUIVALENT, IMPROVEMENT)  # worst news first


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one point, or on one family of points."""

    name: str  # the point's name, or the family's
    family: str  # the family that the point belongs to; a family's own name
    verdict: str  # one of WORDS
    effect: float | None  # share of base's time by which head takes longer; None: unknown, as everywhere below
    low: float | None  # 95 % interval of the effect
    high: float | None
    p: float | None  # one-sided, in the direction of the effect, before any correction
    q: float | None  # p after Benjamini–Hochberg over the tests of its level
    detectable: (
        float | None
    )  # smallest slowdown, as a share of base's time, that would have been seen nine times in ten
    base_gbps: float | None  # GB/s of compulsory bytes, the median of the launches; None for a family
    head_gbps: float | None
    base_seconds: float | None  # seconds per step, the median of the launches; None for a family
    head_seconds: float | None
    launches: tuple[int, int]  # of base, of head
    note: str  # why it is so; "" if there is nothing to add


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that a comparison of base and head found."""

    command: str  # what made it: "compare" or "gate"
    base: str  # what base is: a run, or the text of a revision
    head: str
    machine: str  # the machine both were measured on
    created: str  # time of the comparison, ISO 8601
    verdict: str  # of the whole: one of WORDS
    points: tuple[Judged, ...]  # worst first
    families: tuple[Judged, ...]  # worst first
    missing: tuple[str, ...]  # points that one side lacks or that failed, each with the reason
    notes: tuple[str, ...]  # what the times were divided by, what differs between the sides, the thresholds used
