"""What differs: points of a run, two runs, a series of runs. All ask `analysis/judge.py`."""
