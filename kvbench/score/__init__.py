"""The score: a fixed workload to compare machines by. Here are its definition, its figures and its
rules; nothing is read from files or measured.
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
