"""Points that are equal but for what is read between their passes, which share their rounds."""

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from kvbench.grouping import grouped
from kvbench.model import Point
from kvbench.model.point import STEP


def families(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """By the point with nothing between: those with some bytes, from few to many."""
    apart = sorted((p for p in points if p.streamed), key=lambda point: point.streamed)
    found = grouped((replace(point, between=0), point) for point in apart)
    return {base: tuple(own) for base, own in found.items()}


def alone(points: pd.DataFrame) -> pd.DataFrame:
    """Of the table of points: without those between whose passes other bytes are read."""
    return points[(points["between"] == 0) | (points["op"] == STEP)]
