"""Faults that are planted in a copy of the tree, to see that a check fails. `python -m tests.mutate
--help`.
"""
