"""Points that share their rounds: equal but for what is read between their passes, or but for the
queries of a step.
"""

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from kvbench.grouping import grouped
from kvbench.model import Point
from kvbench.model.contrast import alone_of
from kvbench.model.point import STEP


def families(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """By the point with nothing between: those with some bytes, from few to many."""
    apart = sorted((p for p in points if p.streamed), key=lambda point: point.streamed)
    found = grouped((replace(point, between=0), point) for point in apart)
    return {base: tuple(own) for base, own in found.items()}


def by_queries(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """By the point with one query: those with more, from few to many, a mask at a time; with
    nothing between.
    """
    more = (point for point in points if point.shape.q_len > 1 and not point.streamed)
    ordered = sorted(more, key=lambda point: (point.shape.mask, point.shape.q_len))
    found = grouped((alone_of(point), point) for point in ordered)
    return {base: tuple(own) for base, own in found.items()}


def alone(points: pd.DataFrame) -> pd.DataFrame:
    """Of the table of points: without those between whose passes other bytes are read, and without
    those of several queries a step.
    """
    undisturbed = (points["between"] == 0) | (points["op"] == STEP)
    return points[undisturbed & (points["q_len"] == 1)]
