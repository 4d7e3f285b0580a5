"""What holds for a comparison of two runs as a whole, in sentences."""

from dataclasses import asdict, replace

from kvbench.analysis.differs.compare import LIMITS, Effects, Terms
from kvbench.analysis.judge import COVERAGE, fewest
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.model import Comparison
from kvbench.model.verdict import NOT_COMPARABLE
from kvbench.report.words import paragraphs, said

# launches of each side: one point of fifty that takes 5 % longer is found nine times of ten
ADVISED = 12
_JUDGE = (
    asdict(LIMITS) | asdict(JUDGED) | {"coverage": COVERAGE, "fewest": fewest, "advised": ADVISED}
)


def told(found: Comparison, terms: Terms) -> Comparison:
    """With its notes."""
    points = [row for row in found.points if row.verdict != NOT_COMPARABLE]
    return replace(
        found, notes=tuple(paragraphs("compared", "notes", terms, found.families, points, _JUDGE))
    )


def effects(found: Effects) -> str:
    return said("compared", "effects", found, _JUDGE)
