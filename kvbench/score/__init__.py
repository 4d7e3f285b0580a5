"""The score: a fixed workload by which machines are compared. Its definition, its figures, its
rules; nothing is read or measured here.
"""

from kvbench.score.definition import (
    LOADED_LAUNCHES,
    LONGER,
    LONGER_LAUNCHES,
    RULES,
    SUITE,
    VERSION,
    WIDTHS,
    digest,
    width,
    widths,
    workload,
)
from kvbench.score.figures import Longer, Rate, Score, ScoreFigure, score
from kvbench.score.rules import INVALID, NOISY, OPEN, VALID, Breach
