"""Differences: between points of a run, two runs, and the runs of a series. All use
`analysis/judge.py`.
"""
