"""Notes on a comparison of two runs as a whole."""

from dataclasses import asdict, replace

from kvbench.analysis.differs.compare import LIMITS, Effects, Terms
from kvbench.analysis.judge import COVERAGE, fewest
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.model import Comparison
from kvbench.model.verdict import NOT_COMPARABLE
from kvbench.report.words import paragraphs, said

# launches a side: enough to find one point of fifty that takes 5 % longer, nine times out of ten
ADVISED = 12
_JUDGE = (
    asdict(LIMITS) | asdict(JUDGED) | {"coverage": COVERAGE, "fewest": fewest, "advised": ADVISED}
)


def told(found: Comparison, terms: Terms) -> Comparison:
    """The comparison, with its notes added."""
    points = [row for row in found.points if row.verdict != NOT_COMPARABLE]
    return replace(
        found, notes=tuple(paragraphs("compared", "notes", terms, found.families, points, _JUDGE))
    )


def effects(found: Effects) -> str:
    return said("compared", "effects", found, _JUDGE)
