"""Is every kernel right here, and would a wrong one be noticed? Checks, and faults planted on
purpose.
"""

from kvbench.verify.faults import Fault, plant
from kvbench.verify.kernels import PATIENCE, Checked, check, check_plugin
from kvbench.verify.steps import plant as plant_in_steps
from kvbench.verify.steps import steps_of
