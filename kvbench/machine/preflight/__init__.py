"""Check whether the machine is fit to be measured now. The checks observe and advise; they never
change a setting.
"""

from collections.abc import Sequence

from kvbench.machine.preflight import clock, memory, sharing
from kvbench.machine.preflight.scene import Live, Scene
from kvbench.machine.tree import Files
from kvbench.model import Check, Machine

_BUSY = 0.1  # share of the CPUs' time: above it, a warning comes before the measurement
CHECKS = (
    *(
        sharing.other_tasks,
        sharing.steal,
        sharing.allowed,
        sharing.quota,
        sharing.smt,
        sharing.virtual_machine,
    ),
    *(clock.governor, clock.turbo, clock.core_clock, clock.clock_source),
    *(memory.memory, memory.transparent_huge_pages, memory.placement, memory.numa_balancing),
)


def preflight(
    files: Files, machine: Machine, cpus: Sequence[int] = (), live: Live | None = None
) -> tuple[Check, ...]:
    """Run all checks. `cpus`: one for each thread; by default every allowed CPU."""
    scene = Scene(files, machine, cpus or machine.allowed, live or Live())
    return tuple(look(scene) for look in CHECKS)


def busy(machine: Machine, files: Files | None = None, live: Live | None = None) -> float:
    """The share of the allowed CPUs' time that others use now; 0 if it is small or unknown."""
    scene = Scene(files or Files("/"), machine, machine.allowed, live or Live())
    try:
        share, _ = scene.asleep()
    except LookupError:
        return 0.0
    return share if share > _BUSY else 0.0
