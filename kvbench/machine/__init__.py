"""Read what a measurement needs to know about the machine."""

from kvbench.machine.allowance import available_memory
from kvbench.machine.describe import describe
