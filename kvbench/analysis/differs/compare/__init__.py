"""Compare two runs of one machine.

sides → common points → views of each (by launch) → evidence in each view → the judge → verdicts →
the verdict overall
"""

from kvbench.analysis.differs.compare.side import Side, short
from kvbench.analysis.differs.compare.views import SECONDS, WITNESS
from kvbench.analysis.differs.compare.whole import Terms, compare, learn
from kvbench.analysis.differs.compare.words import LIMITS, Effects, Floor
