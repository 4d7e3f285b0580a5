"""A sweep, from its suite to its run directory."""

from kvbench.session.options import Options
from kvbench.session.planning import foreseen, planned
from kvbench.session.session import Session, sweep
