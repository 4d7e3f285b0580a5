"""Points that share their rounds: equal but for what is read between their passes, for the queries
of a step, or for what is done to scores.
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


def by_scores(points: Iterable[Point]) -> dict[Point, tuple[Point, ...]]:
    """By the point whose scores are as they are: those with sinks, a cap, slopes or first tokens
    that are kept beside the window; with one query and nothing between.
    """
    single = (point for point in points if point.shape.q_len == 1 and not point.streamed)
    found = grouped((alone_of(point), point) for point in single)
    others = {base: tuple(own for own in found[base] if own != base) for base in found}
    return {base: own for base, own in others.items() if own}


def undisturbed(points: pd.DataFrame) -> pd.DataFrame:
    """Of the table of points: without those between whose passes other bytes are read, without
    those of several queries a step, and without those beside which a thread chases. Where all have
    a chase, those of the first kind of chase stay: each kind leaves the point other CPUs.
    """
    alone = (points["between"] == 0) | (points["op"] == STEP)
    kinds = set(points["chase"])
    first = next((kind for kind in CHASES if kind in kinds), NO_CHASE)
    return points[alone & (points["q_len"] == 1) & (points["chase"] == first)]


def usual(points: pd.DataFrame) -> pd.DataFrame:
    """Those that can stand for a model or a dtype: K and V of one dtype, each row with scales of
    its own, and scores as they are, or as a model has them where the run has nothing else.
    """
    pairs = points["dtype"].map(is_pair).astype(bool)
    own = (points["k_scale"] == TOKEN) & (points["alibi"] == 0) & (points["kept"] == 0)
    return points[~pairs & own & ~_beside_plain(points)]


def _beside_plain(points: pd.DataFrame) -> pd.Series:
    """Which have sinks or a cap, and the same without stands among them."""
    done = (points["sinks"] != NONE) | (points["softcap"] != 0)
    if not done.any():
        return done
    columns = [name for name in POINT if name not in ("name", "sinks", "softcap")]
    keys = pd.Series(
        list(points[columns].astype(object).itertuples(index=False, name=None)), points.index
    ).map(str)
    return done & keys.isin(keys[~done])


def alone(points: pd.DataFrame) -> pd.DataFrame:
    """Those that are both."""
    return usual(undisturbed(points))
