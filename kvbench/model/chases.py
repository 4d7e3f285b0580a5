"""A chase: one thread whose every load waits for the one before, while the threads of a point work.
It tells what a load of memory takes beside them.

In a round of a point with a chase:

idle, spin          the chase alone: the point's CPUs sleep; or spin on data in their L1
loaded_LOAD.SHARE   the chase beside a load, which waits after its units so that it would move that
                    share, in %, of what it moves without waits. LOAD: see LOADS
idle_after, ...     the first two once more
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Count, Size, about
from kvbench.model.program import Role

# where the chasing thread runs, by the word of a point
NONE = "none"
NODE = "node"  # on a core of the point's NUMA node that it leaves free
REMOTE = "remote"  # on a core of another node
SIBLING = "sibling"  # on an SMT sibling of one of its cores
CHASES = (NONE, NODE, REMOTE, SIBLING)

IDLE, SPIN = "idle", "spin"
AFTER = "after"  # the form of either that ends a round
LOADED = "loaded"
READ, COPY, OWN = "read", "copy", "point"  # plain reads and copies of memory; the point itself
LOADS = (READ, COPY, OWN)
SHARES = (25, 50, 75, 100)
SECONDS = 0.02  # of a sample, at least: some tens of steps
MANY = 4  # cores: of fewer, the load beside a chase does not saturate memory


@dataclass(frozen=True, slots=True)
class Chase:
    """What a record says of the chase of its point."""

    cpu: Annotated[Count, about("the CPU that chases")]
    bytes: Annotated[Size, about("bytes: of the random cycle, at least 4 times all last caches")]
    huge_bytes: Annotated[Count, about("bytes of it that really are on huge pages")]
    loads: Annotated[Size, about("loads of a step, the least that is timed")]


def loaded(load: str, share: int) -> str:
    """The name of a program, see above."""
    return f"{LOADED}_{load}.{share}"


def of_chase(program: str) -> bool:
    """Whether it times the chase, and not what moves bytes."""
    return Role.of(program).kind in (IDLE, SPIN, LOADED)


def pause(share: int) -> float:
    """After each unit, so many times as long as it took."""
    return 100 / share - 1
