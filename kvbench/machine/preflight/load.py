"""Who else is using the CPUs, and with them the memory, at this moment."""

from kvbench.machine.preflight.check import Finding, check, ok, warn
from kvbench.machine.preflight.scene import Scene
from kvbench.machine.preflight.thresholds import BUSY_SHARE, LOAD_SHARE, OTHER_TASKS, STEAL_SHARE

_WAIT = "wait until it is over, or stop it: see top"


@check("load", "what ran in the last minute may run again in the next, and take bandwidth then")
def load(scene: Scene) -> Finding:
    average = scene.parsed("/proc/loadavg", lambda text: float(text.split()[0]))
    cpus = len(scene.machine.cpus) or len(scene.machine.allowed) or 1
    value = f"{average:.2f} in the last minute, {cpus} CPU{'s' * (cpus > 1)}"
    return ok(value) if average <= LOAD_SHARE * cpus else warn(value, _WAIT)


@check("other tasks", "tasks on any core share the memory controllers and the last-level cache with the measurement")
def other_tasks(scene: Scene) -> Finding:
    busy, runnable = scene.quiet.busy, scene.asleep.runnable
    value = f"{max(0.0, runnable):.1f} runnable, these CPUs busy {busy:.0%} of the time"
    quiet = runnable <= OTHER_TASKS and busy <= BUSY_SHARE
    return ok(value) if quiet else warn(value, _WAIT)


@check("steal", "the hypervisor gives the CPU to others: a thread stands still inside its pass and the others wait")
def steal(scene: Scene) -> Finding:
    span = scene.loaded.span  # an idle CPU has nothing stolen
    if span is None:
        raise LookupError("/proc/stat is missing or stands still")
    if span.steal is None:
        raise LookupError("this kernel does not count steal")
    value = f"{span.steal:.1%} of the time now, {scene.since_boot.steal:.1%} of it since boot"
    if span.steal <= STEAL_SHARE:
        return ok(value)
    return warn(value, "take an instance with CPUs of its own, or measure again when the neighbours are quiet")
