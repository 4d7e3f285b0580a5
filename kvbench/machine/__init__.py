"""What the machine is, as far as a measurement needs to know."""

from kvbench.machine.caches import DataCache, allowed_cpus, cpu_list, data_caches
from kvbench.machine.memory import available_memory

__all__ = ["DataCache", "allowed_cpus", "available_memory", "cpu_list", "data_caches"]
