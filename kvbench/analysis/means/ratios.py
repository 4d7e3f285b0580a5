"""Compute how long one point takes beside another of the same rounds: by launch, and over all
launches.
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
    """The complete records, by the name of their point."""
    return grouped((record.point.name, record) for record in records if record.complete)


def logs(visits: Visits, name: str, other: str) -> dict[int, float]:
    """For each launch, the logarithm of the ratio of the two points' times: the median over the
    rounds that have both.
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
    """The mean over all series, by launch. Only launches that every series has count."""
    launches = set.intersection(*map(set, series)) if series else set()
    return {launch: fmean(each[launch] for each in series) for launch in sorted(launches)}


def judged(found: Mapping[int, float]) -> dict[str, Any]:
    """The ratio with its verdict, and with its interval if there are enough launches for one."""
    held: dict[str, Any] = {"launches": len(found), "word": UNDECIDED}
    if not found:
        return held
    ratio = paired(np.array(list(found.values())))
    held["times"] = math.exp(ratio.estimate)
    if ratio.enclosed:
        held |= {"low": math.exp(ratio.low), "high": math.exp(ratio.high)}
        held["word"] = ratio.way or (SAME if ratio.same else UNDECIDED)
    return held
