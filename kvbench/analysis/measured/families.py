"""Families of points that share their rounds: they differ only in the bytes read between passes, in
the queries of a step, or in what is done to scores.
"""

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from kvbench.analysis.measured.columns import POINT
from kvbench.grouping import grouped
from kvbench.model import Point
from kvbench.model.chases import CHASES
from kvbench.model.chases import NONE as NO_CHASE
from kvbench.model.contrast import alone_of
from kvbench.model.planes import is_pair
from kvbench.model.point import STEP, TOKEN
from kvbench.model.scores import NONE


def families(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """Points that read other bytes between passes, from few to many, by the same point without such
    reads.
    """
    apart = sorted((p for p in points if p.streamed), key=lambda point: point.streamed)
    found = grouped((replace(point, between=0), point) for point in apart)
    return {base: tuple(own) for base, own in found.items()}


def by_queries(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """Points with several queries, by mask and then from few to many, by the same point with one
    query. Points that read other bytes between passes are left out.
    """
    more = (point for point in points if point.shape.q_len > 1 and not point.streamed)
    ordered = sorted(more, key=lambda point: (point.shape.mask, point.shape.q_len))
    found = grouped((alone_of(point), point) for point in ordered)
    return {base: tuple(own) for base, own in found.items()}


def by_scores(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """Points with sinks, a cap, slopes or kept tokens, by the same point with plain scores. All
    have one query and read nothing between passes.
    """
    single = (point for point in points if point.shape.q_len == 1 and not point.streamed)
    found = grouped((alone_of(point), point) for point in single)
    others = {base: tuple(own for own in found[base] if own != base) for base in found}
    return {base: own for base, own in others.items() if own}


def undisturbed(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of the points' table without reads between passes, with one query, and without a
    chase. If all have a chase, those with the first kind of chase are kept: each kind leaves the
    point other CPUs.
    """
    alone = (points["between"] == 0) | (points["op"] == STEP)
    kinds = set(points["chase"])
    first = next((kind for kind in CHASES if kind in kinds), NO_CHASE)
    return points[alone & (points["q_len"] == 1) & (points["chase"] == first)]


def usual(points: pd.DataFrame) -> pd.DataFrame:
    """The rows that can stand for a model or a dtype: one dtype for K and V, a scale for each row,
    and plain scores. If the run has only scores as in a model, those are kept.
    """
    pairs = points["dtype"].map(is_pair).astype(bool)
    own = (points["k_scale"] == TOKEN) & (points["alibi"] == 0) & (points["kept"] == 0)
    return points[~pairs & own & ~_beside_plain(points)]


def _beside_plain(points: pd.DataFrame) -> pd.Series:
    """The rows with sinks or a cap that also exist without them."""
    done = (points["sinks"] != NONE) | (points["softcap"] != 0)
    if not done.any():
        return done
    columns = [name for name in POINT if name not in ("name", "sinks", "softcap")]
    keys = pd.Series(
        list(points[columns].astype(object).itertuples(index=False, name=None)), points.index
    ).map(str)
    return done & keys.isin(keys[~done])


def alone(points: pd.DataFrame) -> pd.DataFrame:
    """The rows that are both undisturbed and usual."""
    return usual(undisturbed(points))
