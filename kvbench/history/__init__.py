"""Many runs of a machine, one after the other. Run directories and what was accepted are the truth; all else is made
of them, at will.

root → run directories → readings → index → series → trends → table / page / export
"""

from kvbench.history.accept import accept
from kvbench.history.export import exported
from kvbench.history.index import Index
from kvbench.history.whole import History, load, place

__all__ = ["History", "Index", "accept", "exported", "load", "place"]
