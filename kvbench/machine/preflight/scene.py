"""What the checks look at. What takes time to observe is observed once, when the first check asks for it."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from statistics import fmean
from typing import Any

from kvbench.machine.allowance import available_memory
from kvbench.machine.preflight.live import Live
from kvbench.machine.preflight.thresholds import ARENA_BYTES, ARENA_SHARE, LOOKS, QUIET_SECONDS
from kvbench.machine.tree import Files
from kvbench.model import Machine
from kvbench.units import MIB, size

_IDLE, _WAIT, _STEAL, _TIMES = 3, 4, 7, 8  # places in a line of /proc/stat; what follows is counted in them already
_THP_USUAL = 2 * MIB


class Scene:
    """`cpus`: where threads would run, one each. Of `machine.allowed` they may be fewer."""

    def __init__(self, files: Files, machine: Machine, cpus: Sequence[int], live: Live) -> None:
        self.files, self.machine, self.live = files, machine, live
        self.cpus = tuple(cpus)

    def fact(self, name: str) -> Any:
        found = self.machine.facts.get(name)
        if found is None or found.value is None:
            raise LookupError(found.note if found and found.note else f"{name} is not known")
        return found.value

    def read(self, path: str) -> str:
        text = self.files.text(path)
        if not text:
            raise LookupError(f"{path} is missing, empty or may not be read")
        return text

    def per_cpu(self, path: str) -> dict[int, str]:
        """By allowed CPU, where it has a file of that name below its folder in sysfs."""
        texts = {cpu: self.files.text(f"/sys/devices/system/cpu/cpu{cpu}/{path}") for cpu in self.machine.allowed}
        return {cpu: text for cpu, text in texts.items() if text}

    # ---- observed ------------------------------------------------------------------------------------------------

    def asleep(self) -> tuple[float, float]:
        """While this process sleeps: the share of their time that CPUs are busy, and how many tasks could run."""
        before, runnable = self._times(), []
        for _ in range(LOOKS):
            self.live.sleep(QUIET_SECONDS / LOOKS)
            runnable.append(self.files.table("/proc/stat").get("procs_running", 1) - 1)
        return busy_and_stolen(before, self._times())[0], fmean(runnable)

    @cached_property
    def loaded(self) -> tuple[list[tuple[float, ...]], list[int], list[int]]:
        """All threads at work: GHz by round and thread; the ticks before and after."""
        before = self._times()
        return self.live.clock(self.cpus), before, self._times()

    @cached_property
    def touched(self) -> tuple[dict[str, int], Counter[int]]:
        """As live.touched() has it, of an arena that memory is enough for."""
        page = self.files.number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") or _THP_USUAL
        wanted, available = max(ARENA_BYTES, page), available_memory(self.files)
        if wanted > available * ARENA_SHARE:
            raise LookupError(f"{size(available)} of memory are available, too little to try {size(wanted)}")
        return self.live.touched(wanted, self.cpus)

    def _times(self) -> list[int]:
        """Ticks by kind, of the allowed CPUs together; none where the system does not say."""
        names = {f"cpu{cpu}" for cpu in self.machine.allowed}
        lines = [line.split() for line in (self.files.text("/proc/stat") or "").splitlines()]
        rows = [line[1 : _TIMES + 1] for line in lines if line and line[0] in names]
        try:
            return [sum(map(int, column)) for column in zip(*rows, strict=False)]
        except ValueError:
            return []


def busy_and_stolen(before: list[int], after: list[int]) -> tuple[float, float | None]:
    """Between two looks at /proc/stat, as shares of the CPUs' time. None: steal is not counted."""
    spent = [max(0, late - early) for early, late in zip(before, after, strict=False)]
    total = sum(spent)
    if not total:
        raise LookupError("/proc/stat is missing, not understood or stands still")
    idle = sum(spent[_IDLE : _WAIT + 1])
    return 1 - idle / total, spent[_STEAL] / total if len(spent) > _STEAL else None
