"""A sweep from its suite to its run directory: what was asked, measured and kept."""

from kvbench.session.options import Options
from kvbench.session.planning import foreseen, planned
from kvbench.session.session import Session, sweep
