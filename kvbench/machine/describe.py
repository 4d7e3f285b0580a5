"""Build the Machine from CPUs, caches and nodes. Every fact names its source."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kvbench.grouping import grouped
from kvbench.machine import allowance
from kvbench.machine.cpus import (
    allowed_cpus,
    data_caches,
    last_levels,
    logical_cpus,
    numa_nodes,
    online_cpus,
)
from kvbench.machine.identity import (
    architecture,
    brand,
    environment,
    fingerprint,
    identity,
    system_facts,
    vendor,
)
from kvbench.machine.kinds import core_kinds
from kvbench.machine.override import Override, load
from kvbench.machine.tree import Files, stated
from kvbench.machine.virtual import container, hypervisor, is_virtual
from kvbench.model import Cpu, DataCache, Fact, Machine, Node
from kvbench.units import MIB, cpu_text, size

_NODES = "/sys/devices/system/node"
_CACHES = "/sys/devices/system/cpu/cpu*/cache"
_GUEST = "stated by a hypervisor"
# Largest believable L3: parts with stacked cache have this much per core. More is a share of
# something larger.
_MOST_PER_CORE = 12 * MIB
_UNSAID_PEAK = Fact(None, "override", "none", "not known: give it under [dram] in an override file")


def describe(files: Files | None = None, override: Path | None = None) -> Machine:
    """Describe the machine as this process sees it, corrected by the file `override`.

    Both fingerprints use what was found: a correction does not make it another machine.
    """
    files, given = files or Files(), load(override) if override else Override()
    online, allowed = online_cpus(files), allowed_cpus(files)
    shown = numa_nodes(files, online)
    nodes = shown or (Node(0, online, allowance.total_memory(files)),)
    kinds, kinds_source = core_kinds(files, online)
    found, source, doubt = logical_cpus(
        files, {cpu: node.node for node in nodes for cpu in node.cpus}
    )
    kind_of = {cpu: kind for kind, members in kinds.items() for cpu in members}
    found = tuple(replace(cpu, kind=kind_of.get(cpu.cpu, "")) for cpu in found)
    declared = tuple(data_caches(online, files))
    caches = given.caches(declared, online)

    own = _own(files)
    virtual = is_virtual(own["hypervisor"])
    doubted = doubts(found, caches, virtual)
    facts = {
        **own,
        **(_as_stated(own, ("brand", "microcode")) if virtual else {}),
        **_cpu_facts(found, source, doubt, virtual),
        **_node_facts(shown, found, virtual),
        **_cache_facts(caches, bool(doubted), virtual),
        "core_kinds": _kind_fact(kinds, kinds_source),
        "dram_peak": _UNSAID_PEAK,
    }
    return Machine(
        cpus=found,
        allowed=allowed,
        caches=caches,
        nodes=nodes,
        facts=given.corrected(facts),
        warnings=tuple(filter(None, (doubt, *doubted, *_lacks(caches, kinds)))),
        fingerprint=fingerprint(
            [own["architecture"].value, identity(files)], found, declared, nodes
        ),
        environment=environment(own, allowed),
    )


def _own(files: Files) -> dict[str, Fact]:
    """Facts that are read from a file, not counted."""
    return {
        "brand": brand(files),
        "vendor": vendor(files),
        "architecture": architecture(files),
        "hypervisor": hypervisor(files),
        "container": container(files),
        **system_facts(files),
        **limit_facts(files),
    }


def _lacks(caches: tuple[DataCache, ...], kinds: dict[str, tuple[int, ...]]) -> Iterator[str]:
    if not caches:
        yield (
            "no cache is declared: give sizes in an override file, or read them off measured"
            " bandwidth"
        )
    if kinds:
        yield (
            f"cores of {len(kinds)} kinds ({', '.join(kinds)}): threads on several kinds share"
            " work unevenly; use the CPUs of one kind"
        )


# ---- facts that are counted, or about limits of this process -------------------------------------


def _cpu_facts(cpus: tuple[Cpu, ...], source: str, doubt: str, virtual: bool) -> dict[str, Fact]:
    """Facts `sockets`, `cores` and `smt` (most CPUs in one core). `doubt`: what may be wrong with
    the socket numbers.
    """
    cores = Counter(cpu.core for cpu in cpus)
    if source == "assumed" and max(cores.values()) == 1:
        return dict.fromkeys(("sockets", "cores", "smt"), Fact(None, source, "none", doubt))
    trust, note = ("low", _GUEST) if virtual else ("high", "")
    return {
        "sockets": Fact(
            len({cpu.socket for cpu in cpus}), source, "low" if doubt else trust, doubt or note
        ),
        "cores": Fact(len(cores), source, trust, note),
        "smt": Fact(max(cores.values()), source, trust, note),
    }


def _node_facts(nodes: tuple[Node, ...], cpus: tuple[Cpu, ...], virtual: bool) -> dict[str, Fact]:
    """Facts `nodes` and `snc`: the most nodes with CPUs in one socket. Above 1 they are sub-NUMA
    clusters (SNC) or nodes per socket (NPS).
    """
    if not nodes:
        return dict.fromkeys(
            ("nodes", "snc"),
            Fact(None, _NODES, "none", "the kernel does not show each CPU on a NUMA node"),
        )
    trust, note = ("low", _GUEST) if virtual else ("high", "")
    per_socket = Counter(socket for socket, _ in {(cpu.socket, cpu.node) for cpu in cpus})
    return {
        "nodes": Fact(len(nodes), _NODES, trust, _without_cpus(nodes) or note),
        "snc": Fact(max(per_socket.values()), _NODES, trust, note),
    }


def _without_cpus(nodes: tuple[Node, ...]) -> str:
    kinds = {None: "unknown size", 0: "nothing"}
    found = grouped(
        (kinds.get(node.bytes, "memory alone"), node.node) for node in nodes if not node.cpus
    )
    return "; ".join(f"of {kind}: {cpu_text(numbers)}" for kind, numbers in found.items())


def _cache_facts(caches: tuple[DataCache, ...], doubted: bool, virtual: bool) -> dict[str, Fact]:
    """Facts `l1d`, `l2`, `l3`: bytes of one cache, the largest if sizes differ. Fact `domains`:
    CPUs of each last-level cache.
    """
    facts = {name: _level(caches, level) for level, name in enumerate(("l1d", "l2", "l3"), 1)}
    groups = [cpu_text(cache.cpus) for cache in last_levels(caches)]
    facts["domains"] = stated(groups or None, _CACHES, "no cache declared")
    for name in ("l3", "domains"):
        if facts[name].value and (doubted or virtual):
            note = "; ".join(
                filter(None, (facts[name].note, _GUEST if virtual else "it contradicts itself"))
            )
            facts[name] = replace(facts[name], confidence="low", note=note)
    return facts


def _level(caches: tuple[DataCache, ...], level: int) -> Fact:
    counts = Counter(cache.size for cache in caches if cache.level == level)
    if not counts:
        return Fact(None, _CACHES, "none", "no such cache is declared with its size and CPUs")
    note = ", ".join(
        f"{count} of {size(each)}" for each, count in sorted(counts.items(), reverse=True)
    )
    return Fact(max(counts), _CACHES, "high", note)


def _kind_fact(kinds: dict[str, tuple[int, ...]], source: str) -> Fact:
    note = "" if kinds else "all cores look alike"
    return Fact(
        {kind: cpu_text(members) for kind, members in kinds.items()},
        source,
        "high" if kinds else "low",
        note,
    )


def limit_facts(files: Files) -> dict[str, Fact]:
    """Facts about limits of this process; "unlimited" if no limit is set."""
    facts = {}
    for name, controller, limit in (
        ("quota", "cpu", allowance.quota_cpus(files)),
        ("memory_limit", "memory", allowance.memory_limit(files)),
    ):
        source = f"control groups, {controller}"
        found = (
            ("unlimited" if limit is None else limit)
            if allowance.has_groups(files, controller)
            else None
        )
        facts[name] = stated(found, source, "this process sees no control group")
    facts["throttled"] = stated(
        allowance.throttled(files), "control groups, cpu.stat", "no group counts it"
    )
    facts["memory"] = stated(allowance.total_memory(files), "/proc/meminfo", "it cannot be read")
    return facts


def _as_stated(facts: dict[str, Fact], names: Iterable[str]) -> dict[str, Fact]:
    """Copies of the facts that a guest knows only from its hypervisor, with low confidence."""
    return {
        name: replace(facts[name], confidence="low", note=facts[name].note or _GUEST)
        for name in names
        if facts[name].value is not None
    }


# ---- whether the declared last-level caches can be true. Hypervisors and firmware invent some of t
# An L3 never spans sockets. NUMA nodes share an L3 only inside a socket. A virtual machine does not
# have an L3 for every core.


def doubts(cpus: tuple[Cpu, ...], caches: tuple[DataCache, ...], virtual: bool) -> tuple[str, ...]:
    """A sentence for each declared fact that cannot be true; empty if nothing is contradictory."""
    thirds = [cache for cache in caches if cache.level == 3]
    found = [line for cache in thirds if (line := _spans(cache, cpus))]
    cores = {cpu.core for cpu in cpus}
    if virtual and len(cores) > 1 and len(thirds) == len(cores):
        found.append(
            "every core has an L3 of its own: virtual machines declare that if the host's"
            " sharing is unknown"
        )
    if virtual:
        found += [line for cache in thirds if (line := _too_large(cache, cpus))]
    return tuple(found)


def _spans(cache: DataCache, cpus: tuple[Cpu, ...]) -> str:
    """Say over which sockets or nodes an L3 is declared, if no hardware does that."""
    inside = [cpu for cpu in cpus if cpu.cpu in cache.cpus]
    sockets, nodes = {cpu.socket for cpu in inside}, {cpu.node for cpu in inside}
    if len(sockets) > 1:
        return (
            f"the L3 of CPUs {cpu_text(cache.cpus)} spans {len(sockets)} sockets: no hardware does"
            " that"
        )
    if len(nodes) > 1 and len({cpu.socket for cpu in cpus if cpu.node in nodes}) > 1:
        return f"the L3 of CPUs {cpu_text(cache.cpus)} is shared by NUMA nodes of several sockets"
    return ""


def _too_large(cache: DataCache, cpus: tuple[Cpu, ...]) -> str:
    cores = len({cpu.core for cpu in cpus if cpu.cpu in cache.cpus})
    if cache.size <= cores * _MOST_PER_CORE:
        return ""
    return (
        f"{size(cache.size)} of L3 for the {cores} cores of CPUs {cpu_text(cache.cpus)} is"
        " the host's, shared with other guests: only measured bandwidth shows how much is yours"
    )
