"""A pointer chase beside a point: one thread follows a random cycle of lines, and each of its loads
waits for the one before. It measures the latency of memory while the point's threads work.

In a round of a point with a chase these programs are sampled:

idle, spin          the chase alone: the point's CPUs sleep; or spin on data in their L1
loaded_LOAD.SHARE   the chase beside a load. The load waits after each unit of work, so that it
                    moves about SHARE % of what it moves without waits. LOAD: see LOADS
idle_after, ...     the first two once more

"Load" has two meanings here: an access of the chase, and the traffic that others make (LOAD).
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Count, Size, about
from kvbench.model.program import Role

# where the chasing thread runs, by the word of a point
NONE = "none"
NODE = "node"  # on a free core of the point's NUMA node
REMOTE = "remote"  # on a core of another node
SIBLING = "sibling"  # on an SMT sibling of one of the point's cores
CHASES = (NONE, NODE, REMOTE, SIBLING)

IDLE, SPIN = "idle", "spin"
AFTER = "after"  # the form of idle and spin at the end of a round
LOADED = "loaded"
READ, COPY, OWN = "read", "copy", "point"  # plain reads and copies of memory; the point itself
LOADS = (READ, COPY, OWN)
SHARES = (25, 50, 75, 100)
SECONDS = 0.02  # the shortest sample of a chase: some tens of steps
MANY = 4  # cores; a load on fewer cores does not saturate memory


@dataclass(frozen=True, slots=True)
class Chase:
    """What a record says of the chase of its point."""

    cpu: Annotated[Count, about("the CPU that chases")]
    bytes: Annotated[Size, about("bytes: the random cycle, at least 4 times all last-level caches")]
    huge_bytes: Annotated[Count, about("bytes: the part of the cycle that really is on huge pages")]
    loads: Annotated[Size, about("loads of one step, the shortest piece that is timed")]


def loaded(load: str, share: int) -> str:
    """The name of the program that chases beside this load at this share."""
    return f"{LOADED}_{load}.{share}"


def of_chase(program: str) -> bool:
    """Whether the program times the chase. Else it times a program that moves bytes."""
    return Role.of(program).kind in (IDLE, SPIN, LOADED)
