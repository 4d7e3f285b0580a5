"""Checks of the clock that takes the times, of the core's clock, and of what sets it."""

from statistics import median

from kvbench.machine.preflight.scene import Finding, Scene, check, judged, ok, unknown, warn
from kvbench.machine.tree import count
from kvbench.units import counted

_SWING = 0.05  # from the best round to the median; a steady core stays within 0.01
_APART = 0.10  # between threads; neighbouring cores of one kind differ by 0.05 at most
_SHORT = 0.80  # of the nominal clock; wide vectors may cost 0.15, plain additions nothing
_QUICK = (
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
    "timebase",
)
_SLOW = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")  # read from a device, or coarse
_CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


@check(
    "clock source",
    "reading a device's clock takes a microsecond or more, and every pass reads it",
)
def clock_source(scene: Scene) -> Finding:
    source = scene.read(_CURRENT)
    if source in _SLOW:
        return warn(
            source,
            "find out why the kernel gave up tsc: dmesg | grep -i tsc;"
            f" then: echo tsc | sudo tee {_CURRENT}",
        )
    return ok(source) if source in _QUICK else unknown(f"{source}: its speed is not known")


@check(
    "core clock",
    "caches and arithmetic run at the core's clock under load, not at its nominal clock",
)
def core_clock(scene: Scene) -> Finding:
    threads = list(zip(*scene.loaded[0], strict=True))
    best = [max(column) for column in threads]
    swing = max(1 - median(column) / max(column) for column in threads)
    low, high = min(best), max(best)
    value = f"{low:.2f} GHz" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f} GHz"
    value += f" under load on {counted(len(best), 'thread')}, varies by {swing:.0%}"
    declared = _declared(scene)
    value += "".join(f"; {name} {ghz:.2f}" for name, ghz in declared.items())
    nominal = declared.get("nominal")
    kinds = {cpu.kind for cpu in scene.machine.cpus if cpu.cpu in scene.cpus}
    if nominal and low < _SHORT * nominal:
        return warn(value, "look for heat, a power limit (sudo turbostat) or others on this core")
    if swing > _SWING:
        return warn(
            value,
            "the clock varies, or others interrupt: fix the frequency, stop other work, run doctor"
            " again",
        )
    if 1 - low / high > _APART and len(kinds) == 1:
        return warn(
            value,
            "cores differ: look for other work and for limits on single CPUs (cpupower)",
        )
    return ok(value)


def _declared(scene: Scene) -> dict[str, float]:
    """The clock in GHz that the system states for these CPUs, by kind of statement; the lowest CPU
    counts.
    """
    found = dict[str, float]()
    for name, path, unit in (
        ("nominal", "cpufreq/base_frequency", 1e6),  # kHz
        ("nominal", "acpi_cppc/nominal_freq", 1e3),  # MHz; 0 where the firmware is silent
        ("current", "cpufreq/scaling_cur_freq", 1e6),
        ("highest", "cpufreq/cpuinfo_max_freq", 1e6),
    ):
        texts = scene.per_cpu(path)
        ghz = min(filter(None, (count(texts.get(cpu, "")) for cpu in scene.cpus)), default=0) / unit
        if ghz:
            found.setdefault(name, ghz)
    return found


_NONE = "no cpufreq here: the hypervisor or the firmware sets the frequency"
# with these drivers, powersave only means that the hardware decides
_SELF_RULED = ("intel_pstate", "amd-pstate-epp")
_EAGER = ("performance", "balance_performance")


@check(
    "governor",
    "if a core speeds up only under load, the first samples are slow; L1 and L2 follow its clock",
)
def governor(scene: Scene) -> Finding:
    governors = scene.per_cpu("cpufreq/scaling_governor")
    if not governors:
        raise LookupError(_NONE)
    drivers = scene.per_cpu("cpufreq/scaling_driver")
    wishes = scene.per_cpu("cpufreq/energy_performance_preference")
    kinds = {(governors[cpu], drivers.get(cpu, ""), wishes.get(cpu, "")) for cpu in governors}
    value = "; ".join(", ".join(filter(None, kind)) for kind in sorted(kinds))
    return judged(
        all(_steady(*kind) for kind in kinds), value, "sudo cpupower frequency-set -g performance"
    )


def _steady(governor: str, driver: str, wish: str) -> bool:
    return governor == "performance" or (
        governor == "powersave" and driver in _SELF_RULED and wish in _EAGER
    )


@check(
    "turbo",
    "with turbo, the clock depends on heat and on how many cores work; DRAM speed hardly changes",
)
def turbo(scene: Scene) -> Finding:
    on = set(scene.per_cpu("cpufreq/boost").values())
    off = scene.files.number("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = scene.files.text("/sys/devices/system/cpu/cpufreq/boost")
    on = on or ({str(1 - off)} if off is not None else {boost} if boost else set())
    if not on:
        raise LookupError("the system has neither intel_pstate/no_turbo nor cpufreq/boost")
    if not on <= {"0", "1"}:
        raise LookupError("no_turbo or boost is neither 0 nor 1")
    if len(on) > 1:
        return warn(
            "on for some CPUs, off for others",
            "write the same value to every /sys/devices/system/cpu/cpu*/cpufreq/boost",
        )
    return ok("off" if on == {"0"} else "on")
