"""Whether the hardware's own counters could be asked, as a second witness of the bytes that moved."""

from kvbench.machine.files import count
from kvbench.machine.preflight.check import Finding, check, ok, unknown, warn
from kvbench.machine.preflight.scene import Scene

_STATUS = "/proc/self/status"
_SOURCES = "/sys/bus/event_source/devices"
_MEMORY = ("uncore_imc", "amd_umc", "amd_df", "amd_l3", "arm_cmn", "arm_dsu", "arm_dmc", "nvidia_scf", "hisi_sccl")
_CORE = ("cpu", "armv", "apple_")  # beginnings of names; riscv's PMU is "cpu" too
_PERFMON, _ADMIN = 38, 21  # numbers of capabilities
_WITHOUT = "kvbench's own numbers need none; of a virtual machine, ask the provider for one with a virtual PMU"
_PERMIT = "sudo sysctl kernel.perf_event_paranoid=0"


@check("counters", "without them the bytes that really crossed the memory bus cannot be counted, only derived")
def counters(scene: Scene) -> Finding:
    core, memory = _sources(scene)
    if not core and not memory:
        return unknown("no counters of cores or of memory controllers", _WITHOUT)
    value = f"cores: {_names(core)}; memory and fabric: {_names(memory)}"
    return ok(value) if core else unknown(value, _WITHOUT)


@check("counter permission", "what may be counted: a process's own cores, or also the memory controllers of all")
def permission(scene: Scene) -> Finding:
    core, memory = _sources(scene)
    if not core and not memory:
        return unknown("nothing here to be permitted", _WITHOUT)
    level = scene.parsed("/proc/sys/kernel/perf_event_paranoid", int)
    everything = level <= 0 or _capable(scene)
    filtered = "; a seccomp filter may forbid it" if scene.files.field(_STATUS, "Seccomp") == "2" else ""
    reach = "everything" if everything else "own processes" if level <= 2 else "nothing"
    value = f"{reach} (perf_event_paranoid {level}){filtered}"
    if everything or (level <= 2 and not memory):
        return ok(value)
    return warn(value, _PERMIT)


def _sources(scene: Scene) -> tuple[list[str], list[str]]:
    names = [path.rpartition("/")[2] for path in scene.files.glob(f"{_SOURCES}/*")]
    memory = [name for name in names if name.startswith(_MEMORY)]
    return [name for name in names if name.startswith(_CORE)], memory


def _names(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return " ".join(names[:most]) + more if names else "none"


def _capable(scene: Scene) -> bool:
    held = count(scene.files.field(_STATUS, "CapEff"), 16) or 0
    return bool(held >> _PERFMON & 1 or held >> _ADMIN & 1)
