"""The cost of a cache by arithmetic alone: bytes, what fits where, and the layout of a decoder's
memory.
"""
