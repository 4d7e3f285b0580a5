"""Many runs of a machine, one after the other. Only the runs and the accepted steps are stored.

root → run directories → summaries → series → trends → table / page / export
"""

from kvbench.history.accepted import accept
from kvbench.history.whole import History, exported, load, place
