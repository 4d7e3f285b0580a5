"""What is known about the machine, and how far it can be trusted."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Count, Number, about

PLACES = ("compact", "spread", "domain", "node", "socket")  # words for CPUs; kvbench.machine.placement knows which

Scalar = bool | Count | Number | str | None
Known = Scalar | list[Scalar | dict[str, Scalar]] | dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known."""

    value: Annotated[Known, about("of any type; null where it is unknown, and then `note` says why")]
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
    facts: Annotated[dict[str, Fact], about("what is known, by name: brand, l3, quota, dram_peak, ...")]
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
