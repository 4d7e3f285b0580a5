"""Measuring: memory, programs, and the one timed loop of the Python side. A launch is a process of its own."""

from kvbench.worker.visit import visit, visit_plugin

__all__ = ["visit", "visit_plugin"]
