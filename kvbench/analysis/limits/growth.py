"""A step that grows by one token at a time: its time over the context, and whether it takes as long
as its parts alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Annotated, Self

import numpy as np

from kvbench.analysis.judge import LIMITS, OUTSIDE
from kvbench.analysis.measured.estimates import FAR_OUT, Estimate
from kvbench.model import Point, Record
from kvbench.model.annotated import Printed, about
from kvbench.model.program import AGAIN, APPENDS, DECODES, LAST, MEMORY, WEIGHTS
from kvbench.units import GB

_ROWS = 8  # rows of the table
FAR = 0.02  # share of the time; a stalled step is off by at least this (judgement)
_Known = float | None
_Times = dict[int, float]  # seconds of a program, by round


class Against(StrEnum):
    """What the interval of a ratio says."""

    SAME = "same"
    LONGER = "longer"
    SHORTER = "shorter"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Fit:
    """The least-squares line through times over the context. Stalled steps are left out."""

    start: Annotated[float, about("seconds: of the line at context 0")]
    start_low: Annotated[float, about("seconds: lower end of its interval")]
    start_high: Annotated[float, about("seconds: upper end of its interval")]
    slope: Annotated[float, about("seconds: that a token of context adds")]
    slope_low: Annotated[float, about("seconds: lower end of its interval")]
    slope_high: Annotated[float, about("seconds: upper end of its interval")]
    left_out: Annotated[int, about("steps that were stalled: their times lie far from all others")]

    @classmethod
    def of(cls, contexts: Sequence[int], seconds: Sequence[float]) -> Self:
        from scipy import stats  # slow to load

        x, y = np.array(contexts, float), np.array(seconds)
        usual = _usual(x, y)
        found = stats.linregress(x[usual], y[usual])
        wide = stats.t.ppf(1 - OUTSIDE, usual.sum() - 2)
        start, slope = float(found.intercept), float(found.slope)
        off = float(wide * found.intercept_stderr), float(wide * found.stderr)
        ends = start - off[0], start + off[0], slope, slope - off[1], slope + off[1]
        return cls(start, *ends, int((~usual).sum()))

    def at(self, context: float) -> float:
        return self.start + self.slope * context


def _usual(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which times lie near a line through the medians of the first and the last third.

    Near: within FAR_OUT times the width of the middle half around it, or within FAR of the median
    time if that is more.
    """
    third = -(-len(x) // 3)
    begin, end = (
        (np.median(x[at]), np.median(y[at])) for at in (slice(third), slice(-third, None))
    )
    off = y - (end[1] - begin[1]) / (end[0] - begin[0]) * x
    low, middle, high = np.quantile(off, (0.25, 0.5, 0.75))
    fence = max(FAR_OUT * (high - low), FAR * abs(float(np.median(y))))
    return np.asarray(np.abs(off - middle) <= fence + (high - low) / 2)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of times of the same rounds, or along a line."""

    value: Annotated[float, about("ratio: median of the rounds")]
    low: Annotated[float, about("ratio: lower end of its interval")]
    high: Annotated[float, about("ratio: upper end of its interval")]
    word: Annotated[Against, about("whether the time is the same, longer, shorter, or open")]

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        found = Estimate.of_ratios(values)
        return cls(found.median, found.low, found.high, against(found.low - 1, found.high - 1))

    @classmethod
    def along(cls, fit: Fit, begin: int, end: int) -> Self:
        """The ratio of the line's time at `end` to that at `begin`."""
        share = (end - begin) / fit.at(begin)
        value, low, high = (share * each for each in (fit.slope, fit.slope_low, fit.slope_high))
        return cls(1 + value, 1 + low, 1 + high, against(low, high))


def against(low: float, high: float, whole: float = 1.0) -> Against:
    """Judge a difference by its interval: the same if that lies within LIMITS.same of the whole."""
    if max(-low, high) <= LIMITS.same * whole:
        return Against.SAME
    if low > 0:
        return Against.LONGER
    return Against.SHORTER if high < 0 else Against.OPEN


@dataclass(frozen=True, slots=True)
class Rest:
    """The time of a step beyond its parts alone."""

    seconds: Annotated[float, about("seconds: median of the rounds")]
    low: Annotated[float, about("seconds: lower end of its interval")]
    high: Annotated[float, about("seconds: upper end of its interval")]
    layer: Annotated[float, about("seconds: the median divided by the layers")]


@dataclass(frozen=True, slots=True)
class Rate:
    """The bytes that a token of context adds, over the seconds that it adds. Null if the slope is
    not surely above 0.
    """

    gbps: Annotated[_Known, about("GB/s: of the bytes that a token adds")]
    low: Annotated[_Known, about("GB/s: lower end of its interval")]
    high: Annotated[_Known, about("GB/s: upper end of its interval")]

    @classmethod
    def of(cls, count: float, fit: Fit) -> Self:
        if fit.slope_low <= 0 or count <= 0:
            return cls(None, None, None)
        return cls(*(count / GB / each for each in (fit.slope, fit.slope_high, fit.slope_low)))


@dataclass(frozen=True, slots=True)
class Along:
    """The steps within a range of contexts."""

    context: Annotated[float, about("tokens: the middle of the range")]
    seconds: Annotated[float, about("seconds: median of the steps in the range")]
    fit: Annotated[float, about("seconds: the line at that context")]
    again: Annotated[
        _Known,
        about("seconds: median of the steps in the range that were repeated; null without any"),
    ]
    decodes: Annotated[_Known, about("seconds: median of all decodes alone; null without any")]


@dataclass(frozen=True, slots=True)
class Series:
    """All samples of one program."""

    context: Annotated[tuple[int, ...], about("tokens of the longest sequence, at each sample")]
    seconds: Annotated[tuple[float, ...], about("seconds: one pass, at each sample")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth(Printed):
    """A step whose sequences grow by one token at a time. Each step is timed once."""

    kernel: Annotated[str, about("op.variant.layout.dtype.isa")]
    point: Annotated[Point, about("the step before the first token")]
    tokens: Annotated[int, about("tokens by which it grew")]
    schedule: Annotated[str, about("order of rows and prefetches that ran")]
    layers: Annotated[int, about("layers of the step")]
    step: Annotated[Fit, about("line through the steps")]
    decodes: Annotated[Fit, about("line through all decodes alone")]
    beyond: Annotated[
        Fit,
        about(
            "line through each step minus the decodes alone of the same round, which shows how"
            " they differ"
        ),
    ]
    grows: Annotated[
        Against,
        about("what a token adds to the step, compared with what it adds to the decodes alone"),
    ]
    bytes_token: Annotated[float, about("bytes: that a token of context adds to a step")]
    step_rate: Annotated[Rate, about("rate of a token's bytes in the step")]
    decodes_rate: Annotated[Rate, about("rate of a token's bytes in the decodes alone")]
    appends: Annotated[float, about("seconds: median of all appends alone")]
    weights: Annotated[_Known, about("seconds: median of all weights alone; null without any")]
    rest: Annotated[Rest, about("time of a step beyond its parts alone")]
    whole: Annotated[Ratio, about("ratio of a step to the sum of its parts alone")]
    again: Annotated[
        Ratio, about("ratio of a step to the same step repeated, as profile step times it")
    ]
    drift: Annotated[
        Ratio,
        about(
            "ratio of plain reads of as many bytes at the end of the growth to those at its"
            " start: whether the machine stayed the same"
        ),
    ]
    rows: Annotated[tuple[Along, ...], about("ranges of contexts, the shortest first")]
    max_abs_err: Annotated[
        float, about("absolute: largest difference of an output element to float64")
    ]
    samples: Annotated[dict[str, Series], about("by program; the step is called point")]


def growth(visit: Record) -> Growth:
    """Analyse a visit of worker.visit_growing()."""
    point, times = visit.point, _by_program(visit)
    assert isinstance(point, Point)
    begin, steps, tokens = point.shape.context + 1, times["point"], len(times["point"])
    context = {number: begin + number for number in steps}
    alone = [times[name] for name in (DECODES, APPENDS, WEIGHTS) if name in times]
    sums = {
        number: sum(each[number] for each in alone) for number in set.intersection(*map(set, alone))
    }
    extra = {number: steps[number] - own for number, own in times[DECODES].items()}
    fits = [_fit(context, each) for each in (steps, times[DECODES], extra)]
    moved = visit.traffic[LAST].bytes_compulsory - visit.traffic["point"].bytes_compulsory
    each = moved / max(1, tokens - 1)
    return Growth(
        kernel=point.kernel,
        point=point,
        tokens=tokens,
        schedule=visit.ran,
        layers=point.shape.layers,
        step=fits[0],
        decodes=fits[1],
        beyond=fits[2],
        grows=against(fits[2].slope_low, fits[2].slope_high, abs(fits[1].slope)),
        bytes_token=each,
        step_rate=Rate.of(each, fits[0]),
        decodes_rate=Rate.of(each, fits[1]),
        appends=median(times[APPENDS].values()),
        weights=median(times[WEIGHTS].values()) if WEIGHTS in times else None,
        rest=_rest(steps, sums, point.shape.layers),
        whole=_ratio(steps, sums),
        again=_ratio(steps, times[AGAIN]),
        drift=Ratio.along(_fit(context, times[MEMORY]), begin, begin + tokens - 1),
        rows=tuple(_along(context, times, fits[0])),
        max_abs_err=visit.max_abs_err,
        samples={
            name: Series(tuple(context[number] for number in own), tuple(own.values()))
            for name, own in times.items()
        },
    )


def _by_program(visit: Record) -> dict[str, _Times]:
    found = dict[str, _Times]()
    for sample in visit.samples:
        found.setdefault(sample.program, {})[sample.round] = sample.seconds
    return found


def _fit(context: dict[int, int], times: _Times) -> Fit:
    return Fit.of([context[number] for number in times], list(times.values()))


def _ratio(steps: _Times, others: _Times) -> Ratio:
    return Ratio.of([steps[number] / own for number, own in others.items()])


def _rest(steps: _Times, sums: _Times, layers: int) -> Rest:
    found = Estimate.of([steps[number] - own for number, own in sums.items()])
    return Rest(found.median, found.low, found.high, found.median / layers)


def _along(context: dict[int, int], times: dict[str, _Times], fit: Fit) -> list[Along]:
    """Ranges of contexts with about equally many steps."""
    found = []
    for part in np.array_split(np.array(sorted(context)), min(_ROWS, len(context))):
        numbers = part.tolist()
        middle = (context[numbers[0]] + context[numbers[-1]]) / 2
        seconds = [_middle(times[name], numbers) for name in (AGAIN, DECODES)]
        step = median(times["point"][number] for number in numbers)
        found.append(Along(middle, step, fit.at(middle), *seconds))
    return found


def _middle(times: _Times, numbers: Sequence[int]) -> float | None:
    own = [times[number] for number in numbers if number in times]
    return median(own) if own else None
