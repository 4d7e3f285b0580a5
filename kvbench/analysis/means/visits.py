"""Count the visits of a run that were not made or failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import pandas as pd

from kvbench.analysis.judge import COVERAGE
from kvbench.intervals import held
from kvbench.model import Ceiling, Plan, Point, Probe


@dataclass(frozen=True, slots=True)
class Lacking:
    """What was planned and is missing, as counts."""

    planned: int  # points
    points: int  # points that were visited
    never: int  # points that were not visited
    every: int  # planned visits
    made: int  # visits that were made, failed ones included
    unfinished: bool
    lost: tuple[str, ...]  # an error for each point without a number
    all_lost: bool
    some: int  # points that failed in some launches
    launches: int  # launches with samples
    fewer: bool  # launches than planned
    few: bool  # launches too few for an interval
    enough: int  # launches that an interval needs
    ceilings: int  # ceilings that gave no number
    no_ceiling: bool
    no_memory: bool  # no read of memory


def lacking(
    plan: Plan, points: pd.DataFrame, samples: pd.DataFrame, ceilings: Sequence[Ceiling]
) -> Lacking:
    planned = sum(isinstance(point, Point) for point in plan.points)
    visits = points[["launches", "set_aside", "failed"]].fillna(0).sum(axis=1)
    # points may have more visits than planned, if launches were added
    made = int(visits.clip(upper=plan.launches).sum())
    lost = tuple(points.loc[points["gbps"].isna(), "error"])
    launches = int(samples["launch"].nunique())
    enough = next(number for number in count(1) if held(number, COVERAGE) >= COVERAGE)
    probes = {each for each in plan.points if isinstance(each, Probe)}
    reads = [each for each in ceilings if each.probe.op == "read" and each.level == "DRAM"]
    return Lacking(
        planned=planned,
        points=len(points),
        never=max(planned - len(points), 0),
        every=planned * plan.launches,
        made=made,
        unfinished=made < planned * plan.launches,
        lost=lost,
        all_lost=len(lost) == len(points),
        some=int(((points["failed"] > 0) & points["gbps"].notna()).sum()),
        launches=launches,
        fewer=launches < plan.launches,
        few=0 < launches < enough,
        enough=enough,
        ceilings=len(probes - {each.probe for each in ceilings}),
        no_ceiling=not ceilings,
        no_memory=not reads,
    )
