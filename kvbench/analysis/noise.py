"""How far the launches of a run lie apart, over all of its points."""

from dataclasses import dataclass

import pandas as pd

MOST = 0.9  # of the points


@dataclass(frozen=True, slots=True)
class Noise:
    """Widths of the points' intervals over the launches, against their medians: half of the points, and nine of ten,
    are no wider. None where there is but one launch. `disturbed`: share of the samples."""

    gbps: float | None
    gbps_most: float | None
    efficiency: float | None
    efficiency_most: float | None
    disturbed: float | None


def noise(points: pd.DataFrame) -> Noise:
    """`points`: the table of that name."""
    several = points[points["launches"] > 1]
    efficiency = several["efficiency_spread"]
    return Noise(
        gbps=known(several["spread"].median()),
        gbps_most=known(several["spread"].quantile(MOST)),
        efficiency=known(efficiency.median()),
        efficiency_most=known(efficiency.quantile(MOST)),
        disturbed=known(points["disturbed"].mean()),
    )


def known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
