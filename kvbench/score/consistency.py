"""Numbers that no machine can reach. An archive that claims them is inconsistent, and therefore
invalid.

These limits are not rules of the score: RULES and their digest do not include them. Somebody who
invents all numbers of a journal can stay below them: valid means consistent, not true.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from kvbench.grouping import grouped
from kvbench.model import Point, Probe, Record
from kvbench.score.definition import width
from kvbench.score.rules import Breach, Value
from kvbench.units import GB, gbps

BYTES = 128  # a cycle and core: two loads of 64 bytes, the most that any core can do
CLOCK = 6.5  # GHz, if an archive states no clock or a higher one: cores are sold with up to 6.2
# times as fast as reads of the same rows in the same rounds; the interval must lie above it
READS = 1.1


def impossible(rows: Iterable[Mapping[str, Any]], records: Sequence[Record]) -> Iterator[Breach]:
    """Find impossible numbers. `rows`: of the table of points. `records`: all visits, probes
    too.
    """
    bits = {r.point.name: width(r.point) for r in records if isinstance(r.point, Point)}
    yield from _too_fast(records, bits)
    for row in rows:
        if row.get("efficiency_low", 0.0) > READS:
            yield Breach(
                "faster", {"found": row["efficiency"], "wanted": READS}, bits.get(row["name"], 0)
            )


def stated_clock(records: Iterable[Record]) -> float:
    """GHz: the highest clock that a probe of the run found, but at most CLOCK."""
    found = [
        median(record.steps * sample.passes / sample.seconds for sample in record.samples) / GB
        for record in records
        if isinstance(record.point, Probe)
        and record.point.op == "clock"
        and record.steps
        and record.samples
    ]
    return min(max(found, default=CLOCK), CLOCK)


def _too_fast(records: Sequence[Record], bits: Mapping[str, int]) -> Iterator[Breach]:
    """For each point, its fastest program if that is faster than its cores can load."""
    clock, top, worst = stated_clock(records), dict[str, float](), dict[str, Breach]()
    for record in records:
        most = BYTES * clock * len(set(record.point.cpus))
        for program, rate in _rates(record).items():
            name = record.point.name
            if rate > max(most, top.get(name, 0.0)):
                top[name] = rate
                facts: dict[str, Value] = {"program": program, "found": rate, "wanted": most}
                worst[name] = Breach("impossible", facts | {"clock": clock}, bits.get(name, 0))
    yield from worst.values()


def _rates(record: Record) -> dict[str, float]:
    """GB/s of each program of a visit: the median of its samples."""
    moved = {program: traffic.bytes_compulsory for program, traffic in record.traffic.items()}
    taken = grouped(
        (s.program, gbps(moved[s.program] * s.passes, s.seconds)) for s in record.samples
    )
    return {program: median(rates) for program, rates in taken.items()}
