"""What the checks look at. What takes time to observe is observed once, when the first check asks for it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from kvbench.machine.allowance import Throttling, available_memory, throttled
from kvbench.machine.preflight.live import Live
from kvbench.machine.preflight.thresholds import ARENA_BYTES, ARENA_SHARE, LOOKS, QUIET_SECONDS
from kvbench.machine.tree import Files
from kvbench.model import Machine
from kvbench.units import MIB, size

_IDLE, _WAIT, _STEAL, _TIMES = 3, 4, 7, 8  # places in a line of /proc/stat; what follows is counted in them already
_THP_USUAL = 2 * MIB


@dataclass(frozen=True, slots=True)
class Span:
    """What the CPUs did between two looks at /proc/stat, as shares of their time. steal None: not counted."""

    busy: float
    steal: float | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """All threads at work: GHz by round and thread, and what the system counted meanwhile."""

    clock: list[tuple[float, ...]]
    span: Span | None  # None where /proc/stat is not there or stands still
    throttled: tuple[Throttling | None, Throttling | None]  # before and after


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
        return _span(before, self._times()).busy, fmean(runnable)

    @cached_property
    def loaded(self) -> Loaded:
        """While the cores count."""
        throttled_before, before = throttled(self.files), self._times_if_any()
        rounds = self.live.clock(self.cpus)
        after, throttled_after = self._times_if_any(), throttled(self.files)
        span = _span(before, after) if sum(before) < sum(after) else None
        return Loaded(rounds, span, (throttled_before, throttled_after))

    @cached_property
    def touched(self) -> tuple[dict[str, int], Counter[int]]:
        """As live.touched() has it, of an arena that memory is enough for."""
        page = self.files.number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") or _THP_USUAL
        wanted, available = max(ARENA_BYTES, page), available_memory(self.files)
        if wanted > available * ARENA_SHARE:
            raise LookupError(f"{size(available)} of memory are available, too little to try {size(wanted)}")
        return self.live.touched(wanted, self.cpus)

    # ---- /proc ---------------------------------------------------------------------------------------------------

    def _times(self) -> list[int]:
        """Ticks by kind, of the allowed CPUs together; of all CPUs where those are not listed (as under lxcfs)."""
        lines = [line.split() for line in self.read("/proc/stat").splitlines()]
        names = {f"cpu{cpu}" for cpu in self.machine.allowed}
        rows = [line[1:] for line in lines if line and line[0] in names]
        rows = rows or [line[1:] for line in lines if line and line[0] == "cpu"]
        if not rows:
            raise LookupError("/proc/stat names no CPU")
        return [sum(map(int, column)) for column in zip(*(row[:_TIMES] for row in rows), strict=False)]

    def _times_if_any(self) -> list[int]:
        try:
            return self._times()
        except (LookupError, ValueError):
            return []


def _span(before: list[int], after: list[int]) -> Span:
    spent = [max(0, late - early) for early, late in zip(before, after, strict=False)]
    total = sum(spent)
    if not total:
        raise LookupError("the counters of /proc/stat stand still")
    idle = sum(spent[_IDLE : _WAIT + 1])
    return Span(1 - idle / total, spent[_STEAL] / total if len(spent) > _STEAL else None)
