"""How fast the cores were in each visit, and which visits were slow."""

from collections.abc import Iterable, Sequence
from statistics import median

from kvbench.model import COMPUTE, PACE, Probe, Record
from kvbench.model.point import Visited

SLOW = 0.8  # of the best speed of a run's cores: below it the host was in another state
_LEFT = 0.5  # of a point's launches: slow visits are set aside if at least these remain


def speeds(records: Sequence[Record]) -> list[float | None]:
    """The speed of the cores in each visit, as a share of the best speed of the same cores in any
    visit; None if unknown. It comes from PACE, or from the probe itself if that is one of
    instructions.
    """
    rates, best = list[tuple[object, float]](), dict[object, float]()
    for record in records:
        point = record.point
        probe = point.op if isinstance(point, Probe) and point.op in COMPUTE else ""
        pace = "point" if probe else PACE
        taken = [
            sample.passes / sample.seconds for sample in record.samples if sample.program == pace
        ]
        rates.append((None, 0.0))
        if taken and not record.error:
            cores = (record.run, point.cpus, point.isa, probe)
            rate = median(taken) * record.traffic[pace].flops
            rates[-1], best[cores] = (cores, rate), max(best.get(cores, 0.0), rate)
    return [rate / best[cores] if rate else None for cores, rate in rates]


def at_speed(records: Iterable[Record]) -> list[Record]:
    """The records without the visits in which the cores were SLOW, if enough launches of the point
    remain.
    """
    records = list(records)
    slow = [speed is not None and speed < SLOW for speed in speeds(records)]
    launches: dict[Visited, tuple[set[int], set[int]]] = {}  # all launches, and those that remain
    for record, aside in zip(records, slow, strict=True):
        if record.complete:
            own, left = launches.setdefault(record.point, (set(), set()))
            own.add(record.launch)
            left.update(() if aside else (record.launch,))
    enough_left = {
        point for point, (own, left) in launches.items() if len(left) >= _LEFT * len(own)
    }
    return [
        record
        for record, aside in zip(records, slow, strict=True)
        if not aside or record.point not in enough_left
    ]
