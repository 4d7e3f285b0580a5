"""Facts counted from CPUs, nodes and caches, and those about this process's limits."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from kvbench.machine import allowance
from kvbench.machine.caches import last_levels
from kvbench.machine.cpus import nodes_per_socket
from kvbench.machine.tree import Files, stated
from kvbench.model import Cpu, DataCache, Fact, Node
from kvbench.units import cpu_text, size

_NODES = "/sys/devices/system/node"
_CACHES = "/sys/devices/system/cpu/cpu*/cache"
_GUEST = "a hypervisor states it"


def cpu_facts(cpus: tuple[Cpu, ...], source: str, doubt: str, virtual: bool) -> dict[str, Fact]:
    """sockets, cores, smt (CPUs of a core at most). `doubt` is what may be wrong with the numbers of sockets."""
    cores = Counter(cpu.core for cpu in cpus)
    if source == "assumed" and max(cores.values()) == 1:
        return dict.fromkeys(("sockets", "cores", "smt"), Fact(None, source, "none", doubt))
    trust, note = ("low", _GUEST) if virtual else ("high", "")
    return {
        "sockets": Fact(len({cpu.socket for cpu in cpus}), source, "low" if doubt else trust, doubt or note),
        "cores": Fact(len(cores), source, trust, note),
        "smt": Fact(max(cores.values()), source, trust, note),
    }


def node_facts(nodes: tuple[Node, ...], cpus: tuple[Cpu, ...], virtual: bool) -> dict[str, Fact]:
    """nodes, and snc: nodes with CPUs in a socket, where 1 is off."""
    if not nodes:
        return dict.fromkeys(
            ("nodes", "snc"), Fact(None, _NODES, "none", "the kernel does not show each CPU on a NUMA node")
        )
    trust, note = ("low", _GUEST) if virtual else ("high", "")
    return {
        "nodes": Fact(len(nodes), _NODES, trust, _without_cpus(nodes) or note),
        "snc": Fact(nodes_per_socket(cpus), _NODES, trust, note),
    }


def _without_cpus(nodes: tuple[Node, ...]) -> str:
    found: dict[str, list[int]] = {}
    for node in nodes:
        if not node.cpus:
            kind = "memory alone" if node.bytes else "unknown size" if node.bytes is None else "nothing"
            found.setdefault(kind, []).append(node.node)
    return "; ".join(f"of {kind}: {cpu_text(numbers)}" for kind, numbers in found.items())


def cache_facts(caches: tuple[DataCache, ...], doubted: bool, virtual: bool) -> dict[str, Fact]:
    """l1d, l2, l3: bytes of one cache, the largest where they differ; domains: CPUs of each last level."""
    facts = {name: _level(caches, level) for level, name in enumerate(("l1d", "l2", "l3"), 1)}
    groups = [cpu_text(cache.cpus) for cache in last_levels(caches)]
    facts["domains"] = stated(groups or None, _CACHES, "no cache declared")
    for name in ("l3", "domains"):
        if facts[name].value and (doubted or virtual):
            note = "; ".join(filter(None, (facts[name].note, _GUEST if virtual else "it contradicts itself")))
            facts[name] = replace(facts[name], confidence="low", note=note)
    return facts


def _level(caches: tuple[DataCache, ...], level: int) -> Fact:
    counts = Counter(cache.size for cache in caches if cache.level == level)
    if not counts:
        return Fact(None, _CACHES, "none", "no such cache is declared with its size and CPUs")
    note = ", ".join(f"{count} of {size(each)}" for each, count in sorted(counts.items(), reverse=True))
    return Fact(max(counts), _CACHES, "high", note)


def kind_fact(kinds: dict[str, tuple[int, ...]], source: str) -> Fact:
    note = "" if kinds else "nothing tells the cores apart"
    return Fact({kind: cpu_text(members) for kind, members in kinds.items()}, source, "high" if kinds else "low", note)


def limit_facts(files: Files) -> dict[str, Fact]:
    """What is no limit is "unlimited"."""
    facts = {}
    for name, controller, limit in (
        ("quota", "cpu", allowance.quota_cpus(files)),
        ("memory_limit", "memory", allowance.memory_limit(files)),
    ):
        source = f"control groups, {controller}"
        found = ("unlimited" if limit is None else limit) if allowance.has_groups(files, controller) else None
        facts[name] = stated(found, source, "no control group is shown to this process")
    facts["throttled"] = stated(allowance.throttled(files), "control groups, cpu.stat", "no group counts it")
    facts["memory"] = stated(allowance.total_memory(files), "/proc/meminfo", "it cannot be read")
    return facts


def as_stated(facts: dict[str, Fact], names: Iterable[str]) -> dict[str, Fact]:
    """Those that a guest has only its hypervisor's word for."""
    known = {name: facts[name] for name in names if facts[name].value is not None}
    return {name: replace(fact, confidence="low", note=fact.note or _GUEST) for name, fact in known.items()}
