"""Checks of memory: page size, share of huge pages, the pages' nodes, and whether there is
enough.
"""

from collections import Counter

from kvbench.machine.allowance import available_memory
from kvbench.machine.preflight.scene import Finding, Scene, check, judged, ok, warn
from kvbench.regime import far_bytes
from kvbench.units import size

_THP = "/sys/kernel/mm/transparent_hugepage"
# buffers of a footprint that no cache helps: triad walks three, and so does a store with its
# witness
_BUFFERS = 3
_HUGE_SHARE = 0.95  # of the arena; with fewer huge pages, address translation costs bandwidth
_STRAY_SHARE = 0.05  # of the pages, on another node than the threads that read them


@check(
    "transparent huge pages",
    "without them every 4 KiB needs its own translation; partly huge buffers give varying times",
)
def transparent_huge_pages(scene: Scene) -> Finding:
    mode = (scene.files.text(f"{_THP}/enabled") or "").partition("[")[2].partition("]")[
        0
    ] or "not stated"
    memory, _ = scene.touched
    resident = memory["resident_bytes"]
    if not resident:
        raise LookupError("the kernel does not say how much of the arena is resident")
    share = memory["huge_bytes"] / resident
    value = (
        f"{mode}; {share:.0%} of an arena of {size(resident)} in pages of"
        f" {size(memory['page_bytes'])}"
    )
    more = (
        f"echo madvise | sudo tee {_THP}/enabled"
        if mode == "never"
        else "echo 1 | sudo tee /proc/sys/vm/compact_memory"
    )
    return judged(mode != "never" and share >= _HUGE_SHARE, value, more)


@check(
    "NUMA balancing",
    "the kernel moves pages during a measurement, so that remote memory may look local",
)
def numa_balancing(scene: Scene) -> Finding:
    mode = scene.files.number("/proc/sys/kernel/numa_balancing")
    if mode == 0:
        return ok("off")
    if scene.fact("nodes") == 1:
        return ok("only one node")
    if mode is None:
        raise LookupError("/proc/sys/kernel/numa_balancing is missing or may not be read")
    return warn("on", "sudo sysctl kernel.numa_balancing=0")


@check(
    "page placement",
    "a thread reads pages of another node over the slower link between nodes",
)
def placement(scene: Scene) -> Finding:
    if scene.fact("nodes") == 1:
        return ok("only one node")
    _, pages = scene.touched
    if not pages:
        raise LookupError("the system does not say where the arena lies")
    homes = {cpu.cpu: cpu.node for cpu in scene.machine.cpus}
    readers = Counter(homes[cpu] for cpu in scene.cpus)
    share = {node: pages[node] / pages.total() for node in pages}
    stray = sum(max(0.0, part - readers[node] / readers.total()) for node, part in share.items())
    value = ", ".join(
        f"{part:.0%} of the pages on node {node}" for node, part in sorted(share.items())
    )
    if stray <= _STRAY_SHARE:
        return ok(value)
    return warn(
        f"{value}; the threads run on other nodes",
        "run without numactl, or free memory on the threads' nodes: numactl --hardware",
    )


@check(
    "memory",
    "buffers that do not fit must shrink, and small ones are read from cache, not DRAM",
)
def memory(scene: Scene) -> Finding:
    needed, available = (
        _BUFFERS * far_bytes(scene.machine, scene.cpus),
        available_memory(scene.files),
    )
    value = (
        f"{size(available)} available, {size(needed)} for {_BUFFERS} buffers larger than any cache"
    )
    if available >= needed:
        return ok(value)
    return warn(value, "free memory, or raise the limit: control group, cpuset.mems")
