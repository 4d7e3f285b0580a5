"""Models as others publish them, read from their files: geometry, and what a step reads of their weights."""

from kvbench.checkpoint.found import find
