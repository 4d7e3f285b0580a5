"""Other engines' decode attention, as peers of our kernels. Each is a class behind an entry point
of the group `kvbench.peers`; interface.py says what it has. Its engine is imported in a process of
its own alone, which may be another Python's: what that process imports of ours needs NumPy and
nothing else, so nothing is imported here.
"""
