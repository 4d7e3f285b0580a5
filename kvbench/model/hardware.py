"""What is known about the machine, and how far it can be trusted. What the library offers, what a
pass of it moves, and how long passes took.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Count, Number, about

# words for CPUs; kvbench.machine.placement knows which
PLACES = ("compact", "spread", "domain", "node", "socket")

Scalar = bool | Count | Number | str | None
FactValue = Scalar | list[Scalar | dict[str, Scalar]] | dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known."""

    value: Annotated[
        FactValue, about("of any type; null where it is unknown, and then `note` says why")
    ]
    source: Annotated[str, about("where it is from")]
    confidence: Annotated[str, about("how far it can be trusted", "high", "low", "none")]
    note: Annotated[str, about("what else must be known; empty if nothing")] = ""


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU."""

    cpu: Annotated[Count, about("its number")]
    core: Annotated[Count, about("lowest CPU of its physical core")]
    socket: Annotated[Count, about("number of its socket")]
    node: Annotated[Count, about("number of its NUMA node")]
    thread: Annotated[Count, about("its place among the core's CPUs")]
    kind: Annotated[str, about("of a hybrid machine's cores; else empty")] = ""


@dataclass(frozen=True, slots=True)
class DataCache:
    """One data or unified cache. A last level is one *domain* each."""

    level: Annotated[Count, about("1, 2, 3, ...")]
    size: Annotated[Count, about("bytes: as declared")]
    cpus: Annotated[tuple[Count, ...], about("those that share it")]
    line: Annotated[Count, about("bytes: of a line")] = 64


@dataclass(frozen=True, slots=True)
class Node:
    """One NUMA node."""

    node: Annotated[Count, about("its number")]
    cpus: Annotated[tuple[Count, ...], about("its own; none: memory alone")]
    bytes: Annotated[Count | None, about("bytes: of its memory; null if unknown")]


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware as far as this process sees it."""

    cpus: Annotated[tuple[Cpu, ...], about("the logical CPUs that are online")]
    allowed: Annotated[tuple[Count, ...], about("those that the process may use")]
    caches: Annotated[tuple[DataCache, ...], about("data and unified caches")]
    nodes: Annotated[tuple[Node, ...], about("NUMA nodes")]
    facts: Annotated[
        dict[str, Fact], about("what is known, by name: brand, l3, quota, dram_peak, ...")
    ]
    warnings: Annotated[tuple[str, ...], about("what is doubtful about all this")]
    fingerprint: Annotated[str, about("digest of the hardware")]
    environment: Annotated[str, about("digest of what an administrator can change")]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a preflight."""

    name: Annotated[str, about("what was looked at")]
    status: Annotated[str, about("unknown: it cannot be seen here", "ok", "warn", "unknown")]
    value: Annotated[str, about("what was seen")]
    why: Annotated[str, about("why it matters for bandwidth")]
    advice: Annotated[str, about("what to do; empty if nothing")] = ""


# ---- the library ---------------------------------------------------------------------------------


def kernel_id(op: str, variant: str, layout: str, dtype: str, isa: str) -> str:
    """A word that does not apply is "-"."""
    return f"{op}.{variant}.{layout}.{dtype}.{isa}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of the library's registry. A word that does not apply is "-"."""

    op: Annotated[str, about("what it does: decode, append, bulk, ...")]
    variant: Annotated[str, about("the way of doing it; - where there is but one")]
    layout: Annotated[str, about("of the cache; - where there is none")]
    dtype: Annotated[str, about("number format of the cache; - where there is none")]
    isa: Annotated[str, about("tier of the instruction set")]
    runnable: Annotated[bool, about("whether this CPU runs it")]
    about: Annotated[str, about("one line on it")]

    @property
    def id(self) -> str:
        return kernel_id(self.op, self.variant, self.layout, self.dtype, self.isa)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one pass of a task moves and computes. Rates are formed with `bytes_compulsory`, of
    which K and V, scales and the page table are parts.
    """

    flops: Number
    bytes_compulsory: Number
    bytes_issued: Number
    bytes_line: Number
    bytes_kv: Number
    bytes_scales: Number
    bytes_table: Number
    ai: Number


@dataclass(frozen=True, slots=True)
class Times:
    """One run of a team: seconds from the common start to the end of the last pass, and how they
    came about.
    """

    seconds: float
    pass_seconds: tuple[float, ...]
    thread_seconds: tuple[float, ...]
    stage_share: tuple[float, ...]
    switches: int
    faults: int
    # of the load beside it: passes, and the seconds that they took
    load_passes: int = 0
    load_seconds: float = 0.0
