"""Compute what samples say. All functions are pure: nothing here measures, reads files or
prints.
"""
