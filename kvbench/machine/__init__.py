"""What the machine is, as far as a measurement needs to know."""

from kvbench.machine.caches import DataCache, allowed_cpus, cpu_list, data_caches

__all__ = ["DataCache", "allowed_cpus", "cpu_list", "data_caches"]
