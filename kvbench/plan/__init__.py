"""Expand a suite to the points that answer its question on this machine."""

from kvbench.plan.expansion import Sweep, expand, only_point, refuse_without_plugin
from kvbench.plan.forecast import Forecast, forecast, refuse_too_large, told, visits
from kvbench.plan.needs import needs_here
from kvbench.plan.probes import Scope, cpu_sets, probes
from kvbench.plan.site import Site
