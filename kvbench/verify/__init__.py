"""Check that every kernel is right here, and that planted faults would be noticed."""

from kvbench.verify.faults import Fault, plant
from kvbench.verify.kernels import PATIENCE, Checked, check, check_plugin
from kvbench.verify.steps import plant as plant_in_steps
from kvbench.verify.steps import steps_of
