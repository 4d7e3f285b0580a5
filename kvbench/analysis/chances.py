"""What shifts of logarithms are told as: chances corrected together, and shares."""

import math
from collections.abc import Sequence


def q_values(chances: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's: valid too where the tests lean the same way, as those of one launch do."""
    from scipy.stats import false_discovery_control  # slow to load

    return [float(chance) for chance in false_discovery_control(chances)] if chances else []


def as_share(log: float) -> float | None:
    """A ratio's logarithm as the share by which it is above 1; None where it is not known."""
    return None if math.isnan(log) else math.expm1(float(log))
