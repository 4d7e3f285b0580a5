"""What is known about the machine, and how far it can be trusted; what the kernels' library has,
what a pass moves, and how long passes took.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Count, Number, about

# words for sets of CPUs, which kvbench.machine.placement resolves
PLACES = ("compact", "spread", "domain", "node", "socket")

Scalar = bool | Count | Number | str | None
FactValue = Scalar | list[Scalar | dict[str, Scalar]] | dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about the machine."""

    value: Annotated[FactValue, about("of any type; null if unknown: then `note` says why")]
    source: Annotated[str, about("where it comes from")]
    confidence: Annotated[str, about("how far it can be trusted", "high", "low", "none")]
    note: Annotated[str, about("remark; empty if none")] = ""


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU."""

    cpu: Annotated[Count, about("its number")]
    core: Annotated[Count, about("lowest CPU of its physical core")]
    socket: Annotated[Count, about("number of its socket")]
    node: Annotated[Count, about("number of its NUMA node")]
    thread: Annotated[Count, about("its position among the CPUs of its core")]
    kind: Annotated[str, about("kind of core on a hybrid machine; else empty")] = ""


@dataclass(frozen=True, slots=True)
class DataCache:
    """One data or unified cache. The CPUs behind one last-level cache are a *domain*."""

    level: Annotated[Count, about("1, 2, 3, ...")]
    size: Annotated[Count, about("bytes: as declared")]
    cpus: Annotated[tuple[Count, ...], about("the CPUs that share it")]
    line: Annotated[Count, about("bytes: of a line")] = 64


@dataclass(frozen=True, slots=True)
class Node:
    """One NUMA node."""

    node: Annotated[Count, about("its number")]
    cpus: Annotated[tuple[Count, ...], about("its CPUs; empty if it has only memory")]
    bytes: Annotated[Count | None, about("bytes: its memory; null if unknown")]


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware as far as this process sees it."""

    cpus: Annotated[tuple[Cpu, ...], about("the logical CPUs that are online")]
    allowed: Annotated[tuple[Count, ...], about("the CPUs that this process may use")]
    caches: Annotated[tuple[DataCache, ...], about("data and unified caches")]
    nodes: Annotated[tuple[Node, ...], about("NUMA nodes")]
    facts: Annotated[
        dict[str, Fact], about("what is known, by name: brand, l3, quota, dram_peak, ...")
    ]
    warnings: Annotated[tuple[str, ...], about("doubts about these facts")]
    fingerprint: Annotated[str, about("digest of the hardware")]
    environment: Annotated[str, about("digest of the settings that an administrator can change")]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check before measuring."""

    name: Annotated[str, about("what was checked")]
    status: Annotated[str, about("unknown: it cannot be checked here", "ok", "warn", "unknown")]
    value: Annotated[str, about("what was found")]
    why: Annotated[str, about("why it matters for bandwidth")]
    advice: Annotated[str, about("what to do; empty if nothing needs to be done")] = ""


# ---- the library ---------------------------------------------------------------------------------


def kernel_id(op: str, variant: str, layout: str, dtype: str, isa: str) -> str:
    """The kernel's name. A word that does not apply is "-"."""
    return f"{op}.{variant}.{layout}.{dtype}.{isa}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of the library's registry. A word that does not apply is "-"."""

    op: Annotated[str, about("what it does: decode, append, bulk, ...")]
    variant: Annotated[str, about("how it does that; - if there is only one way")]
    layout: Annotated[str, about("layout of the cache; - if it has none")]
    dtype: Annotated[str, about("number format of the cache; - if it has none")]
    isa: Annotated[str, about("instruction set")]
    runnable: Annotated[bool, about("whether this CPU runs it")]
    about: Annotated[str, about("description in one line")]

    @property
    def id(self) -> str:
        return kernel_id(self.op, self.variant, self.layout, self.dtype, self.isa)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one pass of a task moves and computes. Rates use `bytes_compulsory`. K and V, scales and
    the page table are parts of it.
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
    """The times of one run of a team: `seconds` from the common start to the end of the last pass,
    and its parts.
    """

    seconds: float
    pass_seconds: tuple[float, ...]
    thread_seconds: tuple[float, ...]
    stage_share: tuple[float, ...]
    switches: int
    faults: int
    # the load beside it: its passes, and how long they took
    load_passes: int = 0
    load_seconds: float = 0.0
