"""Who sets the frequency of the cores, and within which limits."""

from kvbench.machine.files import count
from kvbench.machine.preflight.check import Finding, check, ok, warn
from kvbench.machine.preflight.scene import Scene
from kvbench.machine.preflight.thresholds import CAP_SHARE

_NONE = "no cpufreq here: the hypervisor or the firmware sets the frequency"
_SELF_RULED = ("intel_pstate", "amd-pstate-epp")  # where powersave only means that the hardware decides
_EAGER = ("performance", "balance_performance")


@check("governor", "a core that speeds up only under load is measured slow at first; L1 and L2 follow its clock")
def governor(scene: Scene) -> Finding:
    governors = scene.per_cpu("cpufreq/scaling_governor")
    if not governors:
        raise LookupError(_NONE)
    drivers = scene.per_cpu("cpufreq/scaling_driver")
    wishes = scene.per_cpu("cpufreq/energy_performance_preference")
    kinds = {(governors[cpu], drivers.get(cpu, ""), wishes.get(cpu, "")) for cpu in governors}
    value = "; ".join(", ".join(filter(None, kind)) for kind in sorted(kinds))
    if all(_steady(*kind) for kind in kinds):
        return ok(value)
    return warn(value, "sudo cpupower frequency-set -g performance")


def _steady(governor: str, driver: str, wish: str) -> bool:
    return governor == "performance" or (governor == "powersave" and driver in _SELF_RULED and wish in _EAGER)


@check("frequency limit", "a core held below its own limit has slower caches and fewer FLOP/s than the part can do")
def frequency_limit(scene: Scene) -> Finding:
    highest, able = _frequencies(scene, "scaling_max_freq"), _frequencies(scene, "cpuinfo_max_freq")
    shares = {cpu: highest[cpu] / able[cpu] for cpu in highest.keys() & able.keys()}
    if not shares:
        raise LookupError(_NONE)
    cpu = min(shares, key=lambda cpu: (shares[cpu], cpu))
    value = f"{highest[cpu] / 1e6:.2f} of {able[cpu] / 1e6:.2f} GHz"
    if shares[cpu] >= CAP_SHARE:
        return ok(value)
    return warn(f"{value} (CPU {cpu})", f"sudo cpupower frequency-set -u {able[cpu]}kHz")


def _frequencies(scene: Scene, name: str) -> dict[int, int]:
    """kHz by CPU, where the driver knows it."""
    return {cpu: khz for cpu, text in scene.per_cpu(f"cpufreq/{name}").items() if (khz := count(text))}


@check("turbo", "with turbo, the clock depends on temperature and on how many cores work; DRAM hardly notices")
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
        return warn("on for some CPUs, off for others", "set every /sys/devices/system/cpu/cpu*/cpufreq/boost alike")
    return ok("off" if on == {"0"} else "on")
