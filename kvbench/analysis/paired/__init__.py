"""Two builds that were measured in turn, in the same processes on the same memory.

records of duels → pairs that nothing disturbed → a value for each launch → signed ranks → verdicts → the whole
"""

from kvbench.analysis.paired.limits import LIMITS
from kvbench.analysis.paired.series import Duel, duels
from kvbench.analysis.paired.stages import Screened, confirmed, screened
from kvbench.analysis.paired.whole import Course, whole
