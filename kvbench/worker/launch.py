"""One launch: all points, in a random order of its own, those that share memory one after another."""

import random
from collections.abc import Iterator, Sequence

from kvbench.errors import KvbenchError
from kvbench.model import Probe, Record
from kvbench.native import Library
from kvbench.worker.probing import streams, visits


def launch(
    library: Library, number: int, probes: Sequence[Probe], samples: int, seconds: float, seed: int
) -> Iterator[Record]:
    """A record for every probe; one that cannot be measured has an error in place of samples."""
    shuffled = random.Random(f"{seed}/{number}")
    for group in _groups(library, probes, shuffled):
        left = list(group)
        while left:
            try:
                for record in visits(library, number, tuple(left), samples, seconds, shuffled.randrange(1 << 32)):
                    left.pop(0)
                    yield record
            except KvbenchError as error:  # of this one; the others get their chance
                yield Record(number, left.pop(0), (), {}, {}, error=str(error))


def _groups(library: Library, probes: Sequence[Probe], shuffled: random.Random) -> list[list[Probe]]:
    groups: dict[tuple[object, ...], list[Probe]] = {}
    for probe in probes:
        key = (probe.cpus, probe.pages, probe.bytes, probe.op == "latency", streams(library, probe.op))
        groups.setdefault(key, []).append(probe)
    order = list(groups.values())
    shuffled.shuffle(order)
    for group in order:
        shuffled.shuffle(group)
    return order
