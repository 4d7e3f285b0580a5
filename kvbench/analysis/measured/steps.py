"""Compare a whole step with its parts, each timed alone in the same rounds: whether they add up to
the step, and which part is slower or faster within it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated

from kvbench.analysis.measured.estimates import Estimate
from kvbench.grouping import grouped
from kvbench.model import Record, comparable
from kvbench.model.annotated import about
from kvbench.model.program import PARTS


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a step. share: of the step's time. times: time within the step over time alone.
    adds: their difference, as a share of all parts alone.
    """

    share: Estimate
    times: Estimate
    adds: Estimate


@dataclass(frozen=True, slots=True)
class PartOfStep:
    """All appends, decodes or weights of a step; medians of the rounds."""

    share: Annotated[float, about("share of the step's time")]
    times: Annotated[float, about("ratio: its time within the step over its time alone")]


@dataclass(frozen=True, slots=True)
class Whole:
    """A step compared with its parts.

    times: the step over the sum of its parts. parts: by program. rounds: behind these numbers.
    """

    times: Estimate
    parts: dict[str, Part]
    rounds: int


@dataclass(frozen=True, slots=True)
class _Round:
    """Seconds of a step; and by program, seconds of each part within it and alone."""

    step: float
    within: dict[str, float]
    alone: dict[str, float]

    @property
    def whole(self) -> float:
        return self.step / sum(self.alone.values())

    def share(self, name: str) -> float:
        return self.within[name] / self.step

    def times(self, name: str) -> float:
        return self.within[name] / self.alone[name]

    def adds(self, name: str) -> float:
        return (self.within[name] - self.alone[name]) / sum(self.alone.values())


def whole(records: Iterable[Record]) -> Whole | None:
    """The comparison over launches; None if no round has the step and all its parts. `records`: of
    one step.
    """
    launches = grouped((record.launch, each) for record in records for each in _rounds(record))
    return _of(list(launches.values()))


def by_round(record: Record) -> Whole | None:
    """The comparison of one visit, with intervals over its rounds."""
    return _of([[each] for each in _rounds(record)])


def _of(groups: Sequence[Sequence[_Round]]) -> Whole | None:
    if not groups:
        return None
    parts = {
        name: Part(
            Estimate.of([median(each.share(name) for each in own) for own in groups]),
            Estimate.of_ratios([median(each.times(name) for each in own) for own in groups]),
            Estimate.of([median(each.adds(name) for each in own) for own in groups]),
        )
        for name in groups[0][0].alone
    }
    times = Estimate.of_ratios([median(each.whole for each in own) for own in groups])
    return Whole(times, parts, sum(map(len, groups)))


def _rounds(record: Record) -> Iterator[_Round]:
    """The rounds in which each part is comparable with the step and has a share of it."""
    names = [name for name in PARTS if name in record.traffic]
    by_number = grouped((sample.round, sample) for sample in record.samples)
    for taken in by_number.values() if names else ():
        own = {sample.program: sample for sample in taken}
        if not (step := own.get("point")):
            continue
        within = dict(zip(PARTS, (share * step.each for share in step.shares), strict=False))
        if all(name in own and comparable(own[name], step) and within.get(name) for name in names):
            alone = {name: own[name].each for name in names}
            yield _Round(step.each, {name: within[name] for name in names}, alone)
