"""Other engines' decode attention, as peers of our kernels. Each peer is a class behind an entry
point of the group `kvbench.peers`; interface.py describes it. The engine is imported only in a
process of its own, perhaps under another Python. What that process imports from us may need nothing
but NumPy, so nothing is imported here.
"""
