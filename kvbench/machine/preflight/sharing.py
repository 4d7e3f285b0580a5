"""Checks of what this process may use, whom it shares the machine with, and who uses it now."""

from math import floor

from kvbench.grouping import grouped
from kvbench.machine.preflight.scene import Finding, Scene, busy_and_stolen, check, judged, ok, warn
from kvbench.units import cpu_text

# A pass ends with its slowest thread, so a little work by others shows in every sample.
_BUSY_SHARE = 0.05  # of the CPUs' time; one tick of 20 is 0.05
_OTHER_TASKS = 0.5  # runnable on average; tasks that wake now and then stay below
_STEAL_SHARE = 0.02  # of the CPUs' time under load; samples differ by about as much anyway


@check(
    "other tasks",
    "other tasks on any core use the same memory controllers and last-level cache",
)
def other_tasks(scene: Scene) -> Finding:
    busy, runnable = scene.asleep()
    value = f"{max(0.0, runnable):.1f} runnable, these CPUs busy {busy:.0%} of the time"
    quiet = runnable <= _OTHER_TASKS and busy <= _BUSY_SHARE
    return judged(quiet, value, "wait until the other work ends, or stop it: see top")


@check(
    "steal",
    "the hypervisor gives the CPU to other guests: one thread of a pass stops and the other threads"
    " wait",
)
def steal(scene: Scene) -> Finding:
    _, stolen = busy_and_stolen(*scene.loaded[1:])  # an idle CPU has nothing stolen
    if stolen is None:
        raise LookupError("this kernel does not count steal")
    advice = "use an instance with dedicated CPUs, or measure again when other guests are quiet"
    return judged(stolen <= _STEAL_SHARE, f"{stolen:.1%} of the time now", advice)


@check(
    "allowed CPUs",
    "CPUs outside the mask may run other work in the same last-level cache and the same memory",
)
def allowed(scene: Scene) -> Finding:
    machine = scene.machine
    mine, online = set(machine.allowed), {cpu.cpu for cpu in machine.cpus}
    if not online:
        raise LookupError("the system does not say which CPUs are online")
    value = f"{len(mine)} of {len(online)}: {cpu_text(mine)}"
    if mine >= online:
        return ok(value)
    shared = [
        cache
        for cache in machine.caches
        if mine & set(cache.cpus) and set(cache.cpus) & online - mine
    ]
    if not machine.caches:
        raise LookupError(f"{value}; the system does not say which CPUs share their caches")
    if not shared:
        return ok(value)
    level = max(cache.level for cache in shared)
    others = {cpu for cache in shared for cpu in cache.cpus} & online - mine
    return warn(
        f"{value}; they share an L{level} with {cpu_text(others)}",
        "allow all CPUs of a cache: taskset -c LIST; lscpu -e shows them",
    )


@check(
    "SMT",
    "two threads of a core share its caches and line fill buffers; one thread already fills those",
)
def smt(scene: Scene) -> Finding:
    if scene.fact("smt") == 1:
        return ok("off, or the CPU has none")
    mine, cores = (
        set(scene.machine.allowed),
        grouped((cpu.core, cpu.cpu) for cpu in scene.machine.cpus),
    )
    used = [set(cpus) for cpus in cores.values() if mine.intersection(cpus)]
    foreign = set().union(*used) - mine
    if foreign:
        value = f"on; others may run on CPUs {cpu_text(foreign)} of the same cores"
        return warn(value, "allow all CPUs of a core: taskset -c LIST; lscpu -e shows them")
    doubled = len(set(scene.cpus)) - len([cpus for cpus in used if cpus & set(scene.cpus)])
    if doubled:
        return warn(
            f"on; {doubled} cores would run two threads",
            "give one CPU of each core, or leave out --cpus",
        )
    return ok(f"on; {len(mine)} CPUs of {len(used)} cores, one thread per core")


@check("CPU quota", "waiting threads spin and use up the quota; then all threads stop")
def quota(scene: Scene) -> Finding:
    cpus, threads = scene.fact("quota"), len(scene.cpus)
    if cpus == "unlimited":
        return ok("none")
    value = (
        f"{cpus:.3g} CPUs' worth of time; threads: {threads}, allowed CPUs:"
        f" {len(scene.machine.allowed)}"
    )
    if threads <= cpus:
        return ok(value)
    fewer = f", or use --axis threads={floor(cpus)}" if cpus >= 1 else ""
    return warn(value, f"raise the control group's CPU quota to {threads}{fewer}")


@check(
    "virtual machine",
    "caches and nodes are what the hypervisor declares; other guests share the memory unseen",
)
def virtual_machine(scene: Scene) -> Finding:
    found = scene.fact("hypervisor")
    if found == "none":
        return ok("no")
    return warn(
        found,
        "measure a chip on bare metal or a whole host; compare only runs of one instance",
    )
