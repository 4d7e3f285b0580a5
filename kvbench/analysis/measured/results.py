"""Select what a history stores of a run."""

from collections.abc import Iterable, Iterator

from kvbench.analysis.measured.rates import by_point, measured
from kvbench.model import Record
from kvbench.store.summary import Result


def results(records: Iterable[Record]) -> Iterator[Result]:
    """A result for each point that was measured beside a witness."""
    for point, own in by_point(records).items():
        found = measured(own)
        if witness := found.witness:
            share = found.shares[witness]
            seconds = found.seconds["point"].median
            rate = found.rates["point"].median
            numbers = (share.launches, share.median, share.low, share.high, seconds, rate)
            yield Result(point, *numbers, witness, own[0].ran)
