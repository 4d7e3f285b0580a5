"""Read suites: what a sweep is asked to measure."""

from kvbench.suite.axes import AXES, read_axis
from kvbench.suite.models import Model, model, models, stated
from kvbench.suite.reading import find, load, shipped
from kvbench.suite.values import Relative, Suite
