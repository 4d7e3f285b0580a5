"""What the machine is, as far as a measurement needs to know."""

from kvbench.machine.caches import data_caches
from kvbench.machine.cpus import allowed_cpus, cpu_list
from kvbench.machine.describe import describe
from kvbench.machine.limits import available_memory
from kvbench.model import DataCache

__all__ = ["DataCache", "allowed_cpus", "available_memory", "cpu_list", "data_caches", "describe"]
