"""Compare two builds, measured in turn: is head slower than base?

builds → rivals (what both can measure) → stages of duels → rows (candidates, confirmed) → verdicts

Builds of our kernels, or of a plug-in, run in one process on the same memory (`kernels.py`). Builds
of another engine have a process each (`engines.py`).
"""

from kvbench.gate.builds import Build, build, sides
from kvbench.gate.engines import EngineRequest, engine_side
from kvbench.gate.gate import gate
from kvbench.gate.kernels import Request, tiers
