"""Two builds compared in one process, on the same memory: is head slower than base?

builds → rivals (what both can measure) → stages of duels → rows (candidates, confirmed) → verdicts
"""

from kvbench.gate.builds import Build, build, sides
from kvbench.gate.gate import Request, gate, tiers
