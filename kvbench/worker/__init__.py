"""Measuring one point: its memory, its programs, and the one timed loop of the Python side."""

from kvbench.worker.bench import Bench
from kvbench.worker.visit import visit

__all__ = ["Bench", "visit"]
