"""What is known about the machine, and how far it can be trusted."""

from dataclasses import dataclass
from typing import Any

PLACES = ("compact", "scatter", "domain", "node", "socket")  # words for CPUs; kvbench.machine.placement knows which


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known. value None: unknown, and `note` says why. confidence: high, low, or none where unknown."""

    value: Any
    source: str
    confidence: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU. `core` is the lowest CPU of its physical core; `thread` its place among the core's CPUs."""

    cpu: int
    core: int
    socket: int
    node: int
    thread: int
    kind: str = ""  # of a hybrid machine's cores


@dataclass(frozen=True, slots=True)
class DataCache:
    """One data or unified cache: `size` bytes, shared by `cpus`. A last level is one *domain* each."""

    level: int
    size: int
    cpus: tuple[int, ...]
    line: int = 64


@dataclass(frozen=True, slots=True)
class Node:
    """One NUMA node. Without CPUs it is memory alone."""

    node: int
    cpus: tuple[int, ...]
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware as far as this process sees it. Facts by name; CPUs, caches and nodes in numbers.

    `fingerprint` depends on hardware facts alone; `environment` on what an administrator can change.
    """

    cpus: tuple[Cpu, ...]  # online
    allowed: tuple[int, ...]  # of them, those that this process may use
    caches: tuple[DataCache, ...]
    nodes: tuple[Node, ...]
    facts: dict[str, Fact]
    warnings: tuple[str, ...]
    fingerprint: str
    environment: str


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a preflight: status ok, warn or unknown; why it matters for bandwidth; what to do about it."""

    name: str
    status: str
    value: str
    why: str
    advice: str = ""
