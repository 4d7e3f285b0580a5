"""Whether the declared last-level caches can be true. Hypervisors and firmware invent some of them.

An L3 never spans sockets. NUMA nodes share one only inside a socket. There is not one for every core of a virtual
machine.
"""

from kvbench.model import Cpu, DataCache
from kvbench.units import MIB, cpu_text, size

_MOST_PER_CORE = 12 * MIB  # parts with stacked cache have so much; more is a share of something larger


def doubts(cpus: tuple[Cpu, ...], caches: tuple[DataCache, ...], virtual: bool) -> tuple[str, ...]:
    """A line for each thing that cannot be true; none if nothing speaks against it."""
    thirds = [cache for cache in caches if cache.level == 3]
    found = [line for cache in thirds if (line := _spans(cache, cpus))]
    cores = {cpu.core for cpu in cpus}
    if virtual and len(cores) > 1 and len(thirds) == len(cores):
        found.append(
            "every core has an L3 of its own: virtual machines declare that where the host's sharing is unknown"
        )
    if virtual:
        found += [line for cache in thirds if (line := _too_large(cache, cpus))]
    return tuple(found)


def _spans(cache: DataCache, cpus: tuple[Cpu, ...]) -> str:
    """Sockets and nodes over which one L3 is said to lie."""
    inside = [cpu for cpu in cpus if cpu.cpu in cache.cpus]
    sockets, nodes = {cpu.socket for cpu in inside}, {cpu.node for cpu in inside}
    if len(sockets) > 1:
        return f"the L3 of CPUs {cpu_text(cache.cpus)} spans {len(sockets)} sockets: no hardware does that"
    if len(nodes) > 1 and len({cpu.socket for cpu in cpus if cpu.node in nodes}) > 1:
        return f"the L3 of CPUs {cpu_text(cache.cpus)} is shared by NUMA nodes of several sockets"
    return ""


def _too_large(cache: DataCache, cpus: tuple[Cpu, ...]) -> str:
    cores = len({cpu.core for cpu in cpus if cpu.cpu in cache.cpus})
    if cache.size <= cores * _MOST_PER_CORE:
        return ""
    return (
        f"{size(cache.size)} of L3 for the {cores} cores of CPUs {cpu_text(cache.cpus)} is the host's, "
        "shared with other guests: what is left of it shows in measured bandwidth alone"
    )
