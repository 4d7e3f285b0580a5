"""How far the values of launches lie apart, whatever the middle of them is."""

from collections.abc import Sequence
from statistics import median, quantiles

SPREAD = 1 / 3  # of the median, by the middle half of the launches: beyond it, most of them met another machine
FAR_OUT = 3.0  # widths of the middle half, beyond it: what no ordinary scatter reaches


def steady(values: Sequence[float]) -> bool:
    """Whether the middle half of the values lies within SPREAD of their median. A single value shows nothing: False."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return len(ordered) > 1 and ordered[-1 - quarter] - ordered[quarter] <= SPREAD * median(ordered)


def outliers(values: Sequence[float]) -> int:
    """How many lie beyond the quartiles by more than FAR_OUT times the distance between these (Tukey's far out)."""
    if len(values) < 2:
        return 0
    low, _, high = quantiles(values, n=4, method="inclusive")
    fence = FAR_OUT * (high - low)
    return sum(value < low - fence or value > high + fence for value in values)
