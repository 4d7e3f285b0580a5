"""From a stage's records, compute one value for each launch of a point.

A pair is base and head in turn, each with the third library's witness beside it. Whether a pair
counts is decided only by what the system reports about all of it, never by which side was slower.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from kvbench.grouping import grouped
from kvbench.model import BESIDE, SIDES, Point, Record, Sample

Pair = dict[str, Sample]  # by program

# Limits on pairs, launches and points, chosen and fixed before the runs that test them. The first
# one: the share of the pairs whose number of involuntary switches is usual; more disturb a pair.
USUAL = 0.9
LEAST_PAIRS = 0.5  # of a launch's pairs: with fewer left, the launch does not count
LEAST_LAUNCHES = 0.75  # of a stage's launches: with fewer left, the point is not judged


@dataclass(frozen=True, slots=True)
class Duel:
    """A point in one stage. By launch, log of head's time over base's, and the same of the
    witnesses beside them: medians of pairs.

    `seconds` of a pass, of base and head: medians of launches. `bytes_compulsory`, and the `level`
        that feeds it. `noise`: standard deviation of a pair, from the middle half. `dropped`: share
        of pairs that were disturbed.
    `fault`: what failed. `few`: why there is no clear answer although nothing failed. Both are ""
        if the point can be judged.
    """

    point: Point
    values: dict[int, float] = field(default_factory=dict)
    beside: dict[int, float] = field(default_factory=dict)
    seconds: tuple[float, float] = (math.nan, math.nan)
    bytes_compulsory: float = 0.0
    level: str = "unknown"
    noise: float = math.nan
    dropped: float = 0.0
    fault: str = ""
    few: str = ""


def duels(records: Iterable[Record]) -> list[Duel]:
    """Evaluate the points of one stage."""
    points = grouped(
        (record.point, record)
        for record in records
        if isinstance(record.point, Point)  # a gate measures nothing else
    )
    usual = _usual(record for own in points.values() for record in own)
    # A long pass may cost more.
    return [_duel(point, own, max(usual, _usual(own))) for point, own in points.items()]


def _usual(records: Iterable[Record]) -> float:
    """The usual involuntary switches of a pair in this run: waking threads costs some on any
    machine.
    """
    counts = [_switches(pair) for record in records for pair in pairs(record)]
    return float(np.quantile(counts, USUAL)) if counts else 0.0


def _duel(point: Point, records: Sequence[Record], usual: float) -> Duel:
    if bad := [record for record in records if record.error or not any(pairs(record))]:
        why = bad[0].error or "no pair was taken"
        return Duel(point, fault=f"failed in {len(bad)} of {len(records)} launches: {why}")
    moved = [records[0].traffic[side].bytes_compulsory for side in SIDES]
    if moved[0] != moved[1]:
        return Duel(
            point,
            fault=(
                f"a pass moves {moved[0]:.0f} compulsory bytes in base and {moved[1]:.0f} in head"
            ),
        )
    planned = {record.launch: list(pairs(record)) for record in records}
    kept = {n: [pair for pair in own if _undisturbed(pair, usual)] for n, own in planned.items()}
    counted = {
        n: own for n, own in kept.items() if own and len(own) >= LEAST_PAIRS * len(planned[n])
    }
    dropped = 1 - sum(map(len, kept.values())) / sum(map(len, planned.values()))
    few = (
        f"{dropped:.0%} of its pairs were disturbed; that leaves {len(counted)} of {len(records)}"
        " launches"
    )
    values = {n: [_over(pair, *SIDES) for pair in own] for n, own in counted.items()}
    apart = [value - median(own) for own in values.values() for value in own]
    base, head = (
        median(median(_time(pair[side]) for pair in own) for own in counted.values())
        if counted
        else math.nan
        for side in SIDES
    )
    return Duel(
        point=point,
        values={n: median(own) for n, own in values.items()},
        beside={
            n: median(_over(pair, *BESIDE.values()) for pair in own) for n, own in counted.items()
        },
        seconds=(base, head),
        bytes_compulsory=moved[0],
        level=records[0].level,
        noise=float(np.subtract(*np.quantile(apart, (0.75, 0.25))) / 1.349) if apart else math.nan,
        dropped=dropped,
        few="" if len(counted) >= LEAST_LAUNCHES * len(records) else few,
    )


def pairs(record: Record) -> Iterator[Pair]:
    """The complete pairs, in the order in which they were taken."""
    rounds: dict[int, Pair] = {}
    for sample in record.samples:
        rounds.setdefault(sample.round, {})[sample.program] = sample
    return (pair for pair in rounds.values() if pair.keys() >= {*SIDES, *BESIDE.values()})


def _switches(pair: Pair) -> int:
    return sum(sample.switches for sample in pair.values())


def _undisturbed(pair: Pair, usual: float) -> bool:
    return _switches(pair) <= usual and not any(
        sample.steal or sample.throttled for sample in pair.values()
    )


def _time(sample: Sample) -> float:
    """The time of a pass at the lower quartile, so that a few stalled passes of a sample do not
    count.
    """
    return sample.pass_seconds[0]


def _over(pair: Pair, base: str, head: str) -> float:
    return math.log(_time(pair[head]) / _time(pair[base]))
