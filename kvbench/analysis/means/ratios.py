"""How long one point takes beside another of the same rounds: launch by launch, and over all of
them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from kvbench.analysis.judge import paired
from kvbench.grouping import grouped
from kvbench.model import Record, quotients

SAME, UNDECIDED = "same within noise", "not decided"
Visits = Mapping[str, list[Record]]  # by the point's name


def complete(records: Iterable[Record]) -> Visits:
    """Those that are complete."""
    return grouped((record.point.name, record) for record in records if record.complete)


def logs(visits: Visits, name: str, other: str) -> dict[int, float]:
    """By launch, the logarithm of how long a pass takes beside one of the other point: the median
    of the rounds that have both.
    """
    others = {(record.launch, record.part): record for record in visits.get(other, ())}
    found = {}
    for record in visits.get(name, ()):
        if beside := others.get((record.launch, record.part)):
            if ratios := quotients(
                *([s for s in each.samples if s.program == "point"] for each in (record, beside))
            ):
                found[record.launch] = math.log(median(ratios))
    return found


def mean(series: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """By launch, the mean over all series. A launch counts where it has every one."""
    launches = set.intersection(*map(set, series)) if series else set()
    return {launch: fmean(each[launch] for each in series) for launch in sorted(launches)}


def judged(found: Mapping[int, float]) -> dict[str, Any]:
    """The ratio as the judge has it, with its interval where launches are enough for one, and what
    follows.
    """
    held: dict[str, Any] = {"launches": len(found), "word": UNDECIDED}
    if not found:
        return held
    ratio = paired(np.array(list(found.values())))
    held["times"] = math.exp(ratio.estimate)
    if ratio.enclosed:
        held |= {"low": math.exp(ratio.low), "high": math.exp(ratio.high)}
        held["word"] = ratio.way or (SAME if ratio.same else UNDECIDED)
    return held
