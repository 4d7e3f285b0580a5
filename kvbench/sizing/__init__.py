"""What a cache costs, by arithmetic alone: bytes, what fits where, and how a decoder's memory is
laid out.
"""
