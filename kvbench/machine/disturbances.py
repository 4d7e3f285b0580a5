"""What takes CPUs away from a running measurement, counted by the system: two readings tell what happened between."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from kvbench.machine.allowance import counted_in, throttle_tables
from kvbench.machine.tree import Files

_STEAL = 8  # place in a CPU's line of /proc/stat
_HEAT = "/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"


@dataclass(frozen=True, slots=True)
class Disturbed:
    """steal: seconds that a hypervisor took from the CPUs; throttled: how often a quota or the heat stopped them."""

    steal: float
    throttled: int

    def since(self, before: "Disturbed") -> "Disturbed":
        return Disturbed(max(0.0, self.steal - before.steal), max(0, self.throttled - before.throttled))


class Disturbances:
    """What disturbs `cpus`. What the system does not count stays 0."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._files = Files("/")  # what is measured is always this machine
        self._names = {f"cpu{cpu}" for cpu in cpus}
        self._tables = throttle_tables(self._files)
        heat = dict.fromkeys(_HEAT.format(cpu) for cpu in cpus)
        self._heat = [path for path in heat if self._files.number(path) is not None]
        self._tick = os.sysconf("SC_CLK_TCK")

    def read(self) -> Disturbed:
        hot = sum(self._files.number(path) or 0 for path in self._heat)
        lines = (line.split() for line in (self._files.text("/proc/stat") or "").splitlines())
        stolen = sum(int(words[_STEAL]) for words in lines if words[0] in self._names and len(words) > _STEAL)
        return Disturbed(stolen / self._tick, hot + (counted_in(self._files, self._tables) or 0))
