"""What the machine is, as far as a measurement needs to know."""

from kvbench.machine.allowance import available_memory
from kvbench.machine.describe import describe
