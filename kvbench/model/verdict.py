"""What a comparison of two sides says: a verdict for each point, for each family, and for the
whole.

An effect is the share by which head takes longer than base: 0.08 is 8 % more time than base's,
−0.05 is 5 % less. Every comparison starts from INCONCLUSIVE; the other words have to be earned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import about

# head takes longer: significant beside all other tests, and by more than the smallest effect
REGRESSION = "REGRESSION"
IMPROVEMENT = "IMPROVEMENT"  # head takes less time, by the same rule
# the whole interval of the effect lies within the bounds that count as the same
EQUIVALENT = "EQUIVALENT"
INCONCLUSIVE = "INCONCLUSIVE"  # none of these: `detectable` says what would have been seen
# the two sides met different conditions: their times cannot be held against each other
CONTAMINATED = "CONTAMINATED"
NOT_COMPARABLE = "NOT_COMPARABLE"  # failed, wrong or measured on one side only

# worst news first
WORDS = (REGRESSION, CONTAMINATED, INCONCLUSIVE, NOT_COMPARABLE, EQUIVALENT, IMPROVEMENT)


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one point, or on one family of points."""

    name: Annotated[str, about("its name")]
    family: Annotated[str, about("the family that it belongs to")]
    verdict: Annotated[str, about("of this row", *WORDS)]
    effect: Annotated[
        float | None, about("share of base's time by which head takes longer; null if unknown")
    ]
    low: Annotated[
        float | None, about("share of base's time: lower end of the effect's 95 % interval")
    ]
    high: Annotated[
        float | None, about("share of base's time: upper end of the effect's 95 % interval")
    ]
    p: Annotated[
        float | None,
        about("probability: of such an effect by chance, one-sided, before any correction"),
    ]
    q: Annotated[
        float | None, about("probability: p after Benjamini-Hochberg over the tests of its level")
    ]
    detectable: Annotated[
        float | None, about("share of base's time: the smallest slowdown seen nine times in ten")
    ]
    base_gbps: Annotated[
        float | None, about("GB/s: of base, median of its launches; null for families")
    ]
    head_gbps: Annotated[float | None, about("GB/s: the same of head")]
    base_seconds: Annotated[
        float | None, about("seconds: of a pass, median of base's launches; null for families")
    ]
    head_seconds: Annotated[float | None, about("seconds: the same of head")]
    launches: Annotated[tuple[int, int], about("of base, of head")]
    note: Annotated[str, about("why it is so; empty if there is nothing to add")]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of the effect's interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that a comparison of base and head found."""

    command: Annotated[str, about("what made it", "compare", "gate")]
    base: Annotated[str, about("what head is held against: a run, or a build")]
    head: Annotated[str, about("what is judged")]
    machine: Annotated[str, about("what both were measured on")]
    created: Annotated[str, about("time of the comparison, ISO 8601")]
    verdict: Annotated[str, about("of the whole", *WORDS)]
    points: Annotated[tuple[Judged, ...], about("worst first")]
    families: Annotated[tuple[Judged, ...], about("worst first")]
    missing: Annotated[
        tuple[str, ...], about("points that one side lacks or that failed, each with the reason")
    ]
    notes: Annotated[
        tuple[str, ...], about("the witnesses, what differs between the sides, the thresholds")
    ]
