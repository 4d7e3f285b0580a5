"""Which points answer a question on this machine."""

from kvbench.plan.ceilings import Scope, ceilings, cpu_sets
from kvbench.plan.forecast import Forecast, forecast
from kvbench.plan.site import Site
from kvbench.plan.sweep import Sweep, expand

__all__ = ["Forecast", "Scope", "Site", "Sweep", "ceilings", "cpu_sets", "expand", "forecast"]
