"""The clock that times, and the clock that is timed."""

from statistics import median

from kvbench.machine.files import count
from kvbench.machine.preflight.check import Finding, check, ok, unknown, warn
from kvbench.machine.preflight.scene import Scene
from kvbench.machine.preflight.thresholds import CLOCK_APART, CLOCK_SHORT, CLOCK_SWING, TIMER_SECONDS
from kvbench.units import duration

_QUICK = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "riscv_clocksource", "timebase")
_SLOW = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")  # read from a device, or coarse
_CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


@check("clock source", "a clock that is read from a device costs a microsecond or more each time, in every pass")
def clock_source(scene: Scene) -> Finding:
    source = scene.read(_CURRENT)
    if source in _SLOW:
        return warn(source, f"see why tsc was given up: dmesg | grep -i tsc; then: echo tsc | sudo tee {_CURRENT}")
    return ok(source) if source in _QUICK else unknown(f"{source}: not known how quick that is")


@check("timer", "a pass shorter than some steps of the timer cannot be timed alone")
def timer(scene: Scene) -> Finding:
    step = scene.live.timer_step()
    if step <= 0:
        raise LookupError("the clock did not move while it was read")
    value = f"steps of {duration(step)}, reading included"
    return ok(value) if step <= TIMER_SECONDS else warn(value, "see the clock source above")


@check("core clock", "caches and arithmetic run at the clock of the core: under load, not the one on the label")
def core_clock(scene: Scene) -> Finding:
    best = [max(column) for column in zip(*scene.loaded.clock, strict=True)]
    swing = max(1 - median(column) / max(column) for column in zip(*scene.loaded.clock, strict=True))
    low, high = min(best), max(best)
    value = f"{low:.2f} GHz" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f} GHz"
    value += f" under load on {len(best)} thread{'s' * (len(best) > 1)}, {swing:.0%} of it swing"
    declared = _declared(scene)
    value += "".join(f"; {name} {ghz:.2f}" for name, ghz in declared.items())
    nominal = declared.get("nominal")
    kinds = {cpu.kind for cpu in scene.machine.cpus if cpu.cpu in scene.cpus}
    if nominal and low < CLOCK_SHORT * nominal:
        return warn(value, "look for heat or a power limit: sudo turbostat, or ask who else uses this core")
    if swing > CLOCK_SWING:
        return warn(value, "it moves, or others interrupt it: fix the frequency, stop other work, run doctor again")
    if 1 - low / high > CLOCK_APART and len(kinds) == 1:
        return warn(value, "the cores differ: look for other work and for limits of single CPUs; see cpupower")
    return ok(value)


def _declared(scene: Scene) -> dict[str, float]:
    """GHz that the system states for these CPUs: the least of each kind of statement."""
    found = {}
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
