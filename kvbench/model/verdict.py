"""The verdicts of a comparison of two sides: for each point, for each family, and overall.

An effect is the share by which head takes longer than base: 0.08 means 8 % more time, −0.05 means 5
% less. Every comparison starts from INCONCLUSIVE; the other words need evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import about

# head takes longer: significant after correction, and by more than the smallest effect
REGRESSION = "REGRESSION"
IMPROVEMENT = "IMPROVEMENT"  # head takes less time, by the same rule
# the whole interval of the effect lies within the bounds that count as the same
EQUIVALENT = "EQUIVALENT"
INCONCLUSIVE = "INCONCLUSIVE"  # no other word fits: `detectable` has the effect it could have seen
# the two sides ran under different conditions: their times cannot be compared
CONTAMINATED = "CONTAMINATED"
NOT_COMPARABLE = "NOT_COMPARABLE"  # failed, wrong or measured on one side only

# worst news first
WORDS = (REGRESSION, CONTAMINATED, INCONCLUSIVE, NOT_COMPARABLE, EQUIVALENT, IMPROVEMENT)


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one point, or on one family of points."""

    name: Annotated[str, about("its name")]
    family: Annotated[str, about("the family it belongs to")]
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
        about("probability: of such an effect by chance, one-sided, before correction"),
    ]
    q: Annotated[
        float | None,
        about("probability: p corrected by Benjamini-Hochberg over the tests of its level"),
    ]
    detectable: Annotated[
        float | None,
        about("share of base's time: the smallest slowdown that would be seen nine times in ten"),
    ]
    base_gbps: Annotated[float | None, about("GB/s: median of base's launches; null for families")]
    head_gbps: Annotated[float | None, about("GB/s: median of head's launches; null for families")]
    base_seconds: Annotated[
        float | None, about("seconds: one pass, median of base's launches; null for families")
    ]
    head_seconds: Annotated[
        float | None, about("seconds: one pass, median of head's launches; null for families")
    ]
    launches: Annotated[tuple[int, int], about("launches of base and of head")]
    note: Annotated[str, about("the reason; empty if there is nothing to add")]

    @property
    def ends(self) -> tuple[float, float] | None:
        """The two ends of the effect's interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that a comparison of base and head found."""

    command: Annotated[str, about("command that made it", "compare", "gate")]
    base: Annotated[str, about("what head is compared with: a run or a build")]
    head: Annotated[str, about("what is judged")]
    machine: Annotated[str, about("machine of both sides")]
    created: Annotated[str, about("time of the comparison, ISO 8601")]
    verdict: Annotated[str, about("the overall verdict", *WORDS)]
    points: Annotated[tuple[Judged, ...], about("worst first")]
    families: Annotated[tuple[Judged, ...], about("worst first")]
    missing: Annotated[
        tuple[str, ...], about("points that one side lacks or that failed, with reasons")
    ]
    notes: Annotated[tuple[str, ...], about("witnesses, differences between the sides, thresholds")]
