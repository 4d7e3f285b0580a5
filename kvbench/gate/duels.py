"""From the records of a stage to one value for each launch of a point.

A pair is base and head in turn, and beside each the witness of a third library. Whether a pair
counts is decided without a look at which side was slower: by what the system says of all of it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from kvbench.grouping import grouped
from kvbench.model import BESIDE, SIDES, Point, Record, Sample

Pair = dict[str, Sample]  # by program

# Which pairs, launches and points count: judgement, frozen before the runs that put them to the
# proof. share of a run's or a point's pairs whose involuntary switches are usual; more disturb one
USUAL = 0.9
LEAST_PAIRS = 0.5  # of a launch: with fewer left it does not count
LEAST_LAUNCHES = 0.75  # of a stage: with fewer left a point is not judged


@dataclass(frozen=True, slots=True)
class Duel:
    """A point in one stage. By launch, logarithms of head's time over base's, and of those beside:
    medians of pairs.

    `seconds` of a pass, of base and head: medians of launches. `bytes_compulsory`, and the
        `level` that feeds it. `noise`: standard deviation of a pair, as half of them
        lie. `dropped`: share of pairs that were disturbed.
    `fault`: what failed, and `few`: why nothing is clear though nothing failed; "" where something
        can be said of it.
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
    """The points of one stage."""
    points = grouped(
        (record.point, record)
        for record in records
        if isinstance(record.point, Point)  # as all of them are
    )
    usual = _usual(record for own in points.values() for record in own)
    # a long pass may cost more
    return [_duel(point, own, max(usual, _usual(own))) for point, own in points.items()]


def _usual(records: Iterable[Record]) -> float:
    """Involuntary switches of a pair, as most of a run have them: waking threads cost some on any
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
        f"{dropped:.0%} of its pairs were disturbed, which leaves {len(counted)} of {len(records)}"
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
    """Those that are whole, in the order in which they were taken."""
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
    """A pass as a quarter of them are faster: what stalls a few of a sample is no part of it."""
    return sample.pass_seconds[0]


def _over(pair: Pair, base: str, head: str) -> float:
    return math.log(_time(pair[head]) / _time(pair[base]))
