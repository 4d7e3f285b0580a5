"""A sweep from its suite to its run directory: what was asked, measured and kept."""

from kvbench.session.options import Options
from kvbench.session.session import Session, foreseen, planned, sweep
