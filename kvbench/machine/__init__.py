"""What the machine is, as far as a measurement needs to know."""

from kvbench.machine.describe import describe
from kvbench.machine.limits import available_memory
