"""Many runs of a machine, one after the other. The runs and what was accepted are the truth:
nothing else is kept.

root → run directories → summaries → series → trends → table / page / export
"""

from kvbench.history.accepted import accept
from kvbench.history.whole import History, exported, load, place
