"""How far the launches of a run lie apart, over all of its points."""

from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.model.annotated import about

MOST = 0.9  # of the points


@dataclass(frozen=True, slots=True)
class Noise:
    """How far launches lie apart. Half of the points are no wider, and nine of ten no wider than `most`."""

    gbps: Annotated[float | None, about("share of the median: interval over launches, of half of the points")]
    gbps_most: Annotated[float | None, about("share of the median: the same of nine points in ten")]
    efficiency: Annotated[float | None, about("share of the median: the same as gbps, of efficiency")]
    efficiency_most: Annotated[float | None, about("share of the median: the same of nine points in ten")]
    disturbed: Annotated[float | None, about("share of the samples that met other work")]


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
