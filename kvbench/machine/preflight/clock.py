"""The clock that times, the clock that is timed, and who sets that."""

from statistics import median

from kvbench.machine.preflight.scene import Finding, Scene, check, judged, ok, unknown, warn
from kvbench.machine.tree import count
from kvbench.units import counted

_SWING = 0.05  # from the best round to the median; a steady core stays within 0.01
_APART = 0.10  # between threads: neighbouring cores of one kind differ by 0.05 at the most
_SHORT = 0.80  # of the nominal clock; wide vectors alone may cost 0.15, plain additions nothing
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
    "a clock that is read from a device costs a microsecond or more each time, in every pass",
)
def clock_source(scene: Scene) -> Finding:
    source = scene.read(_CURRENT)
    if source in _SLOW:
        return warn(
            source,
            f"see why tsc was given up: dmesg | grep -i tsc; then: echo tsc | sudo tee {_CURRENT}",
        )
    return ok(source) if source in _QUICK else unknown(f"{source}: not known how quick that is")


@check(
    "core clock",
    "caches and arithmetic run at the clock of the core: under load, not the one on the label",
)
def core_clock(scene: Scene) -> Finding:
    threads = list(zip(*scene.loaded[0], strict=True))
    best = [max(column) for column in threads]
    swing = max(1 - median(column) / max(column) for column in threads)
    low, high = min(best), max(best)
    value = f"{low:.2f} GHz" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f} GHz"
    value += f" under load on {counted(len(best), 'thread')}, {swing:.0%} of it swing"
    declared = _declared(scene)
    value += "".join(f"; {name} {ghz:.2f}" for name, ghz in declared.items())
    nominal = declared.get("nominal")
    kinds = {cpu.kind for cpu in scene.machine.cpus if cpu.cpu in scene.cpus}
    if nominal and low < _SHORT * nominal:
        return warn(
            value, "look for heat or a power limit: sudo turbostat, or ask who else uses this core"
        )
    if swing > _SWING:
        return warn(
            value,
            "it moves, or others interrupt it: fix the frequency, stop other work, run doctor"
            " again",
        )
    if 1 - low / high > _APART and len(kinds) == 1:
        return warn(
            value,
            "the cores differ: look for other work and for limits of single CPUs; see cpupower",
        )
    return ok(value)


def _declared(scene: Scene) -> dict[str, float]:
    """GHz that the system states for these CPUs: the least of each kind of statement."""
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
# where powersave only means that the hardware decides
_SELF_RULED = ("intel_pstate", "amd-pstate-epp")
_EAGER = ("performance", "balance_performance")


@check(
    "governor",
    "a core that speeds up only under load is measured slow at first; L1 and L2 follow its clock",
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
    "with turbo, the clock depends on temperature and on how many cores work; DRAM hardly notices",
)
def turbo(scene: Scene) -> Finding:
    on = set(scene.per_cpu("cpufreq/boost").values())
    off = scene.files.number("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = scene.files.text("/sys/devices/system/cpu/cpufreq/boost")
    on = on or ({str(1 - off)} if off is not None else {boost} if boost else set())
    if not on:
        raise LookupError("neither intel_pstate/no_turbo nor cpufreq/boost is there")
    if not on <= {"0", "1"}:
        raise LookupError("what no_turbo or boost says is neither 0 nor 1")
    if len(on) > 1:
        return warn(
            "on for some CPUs, off for others",
            "set every /sys/devices/system/cpu/cpu*/cpufreq/boost alike",
        )
    return ok("off" if on == {"0"} else "on")
