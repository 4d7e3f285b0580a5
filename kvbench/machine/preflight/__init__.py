"""Whether the machine is fit to be measured now. It observes and advises; it never changes a setting."""

from collections.abc import Sequence

from kvbench.machine.files import Files
from kvbench.machine.preflight import clock, counters, limits, load, memory, power
from kvbench.machine.preflight.live import Live
from kvbench.machine.preflight.scene import Scene
from kvbench.model import Check, Machine

CHECKS = (
    load.load,
    load.other_tasks,
    load.steal,
    limits.allowed,
    limits.quota,
    limits.throttling,
    limits.smt,
    limits.core_kinds,
    limits.virtual_machine,
    limits.container,
    power.governor,
    power.frequency_limit,
    power.turbo,
    clock.core_clock,
    clock.clock_source,
    clock.timer,
    memory.memory,
    memory.swap,
    memory.base_pages,
    memory.transparent_huge_pages,
    memory.coverage,
    memory.placement,
    memory.numa_balancing,
    counters.counters,
    counters.permission,
)


def preflight(files: Files, machine: Machine, cpus: Sequence[int] = (), live: Live | None = None) -> tuple[Check, ...]:
    """All checks. `cpus`: where threads would run, one each; without them on every allowed CPU."""
    scene = Scene(files, machine, cpus or machine.allowed, live or Live())
    return tuple(look(scene) for look in CHECKS)
