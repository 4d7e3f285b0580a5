"""The Machine, put together: CPUs, caches and nodes, and every fact with its source."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kvbench.machine import allowance
from kvbench.machine.brand import architecture, brand, identity, vendor
from kvbench.machine.caches import data_caches
from kvbench.machine.cpus import allowed_cpus, logical_cpus, numa_nodes, online_cpus
from kvbench.machine.facts import as_stated, cache_facts, cpu_facts, kind_fact, limit_facts, node_facts
from kvbench.machine.identity import environment, fingerprint, system_facts
from kvbench.machine.kinds import core_kinds
from kvbench.machine.override import Override, load
from kvbench.machine.sanity import doubts
from kvbench.machine.tree import Files
from kvbench.machine.virtual import container, hypervisor, is_virtual
from kvbench.model import DataCache, Fact, Machine, Node

_UNSAID_PEAK = Fact(None, "override", "none", "no file says it: [dram] of one that corrects the machine does")


def describe(files: Files | None = None, override: Path | None = None) -> Machine:
    """The machine as this process sees it, corrected by the file `override`.

    Both fingerprints are of what was found: a correction makes no other machine of it.
    """
    files, given = files or Files(), load(override) if override else Override()
    online, allowed = online_cpus(files), allowed_cpus(files)
    shown = numa_nodes(files, online)
    nodes = shown or (Node(0, online, allowance.total_memory(files)),)
    kinds, kinds_source = core_kinds(files, online)
    found, source, doubt = logical_cpus(files, {cpu: node.node for node in nodes for cpu in node.cpus})
    kind_of = {cpu: kind for kind, members in kinds.items() for cpu in members}
    found = tuple(replace(cpu, kind=kind_of.get(cpu.cpu, "")) for cpu in found)
    declared = tuple(data_caches(online, files))
    caches = given.caches(declared, online)

    own = _own(files)
    virtual = is_virtual(own["hypervisor"])
    doubted = doubts(found, caches, virtual)
    counted = cpu_facts(found, source, doubt, virtual) | node_facts(shown, found, virtual)
    counted |= cache_facts(caches, bool(doubted), virtual)
    counted |= {"core_kinds": kind_fact(kinds, kinds_source), "dram_peak": _UNSAID_PEAK}
    stated = as_stated(own, ("brand", "microcode")) if virtual else {}
    return Machine(
        cpus=found,
        allowed=allowed,
        caches=caches,
        nodes=nodes,
        facts=given.corrected({**own, **stated, **counted}),
        warnings=tuple(filter(None, (doubt, *doubted, *_lacks(caches, kinds)))),
        fingerprint=fingerprint([own["architecture"].value, identity(files)], found, declared, nodes),
        environment=environment(own, allowed),
    )


def _own(files: Files) -> dict[str, Fact]:
    """Facts that are read, not counted."""
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
        yield "no cache is declared: sizes must come from an override file, or be seen in measured bandwidth"
    if kinds:
        yield f"cores of {len(kinds)} kinds ({', '.join(kinds)}): threads on both share work unevenly; name one's CPUs"
