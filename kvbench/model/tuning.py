"""Which schedule a class of points is read by: what was measured of the presets, and the choice that follows from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Annotated

from kvbench.model.annotated import about

TUNER = 1  # version of what is measured and of the classes: evidence of another one is not pooled
EFFECT = math.log(1.02)  # the default stays unless another preset is faster by more; within it the simpler one wins
MOST = 64  # rounds of a class that are kept, the newest
_SURE = 0.9  # with which an interval holds the median of the rounds

Ratios = Mapping[str, Sequence[float]]  # by preset: log of its time over the default's, round by round


@dataclass(frozen=True, slots=True)
class Tuned:
    """One tuning: presets in turn on the same memory."""

    of: Annotated[str, about("the class of points")]
    default: Annotated[str, about("the preset that they have where nothing is measured")]
    ratios: Annotated[
        dict[str, tuple[float, ...]], about("by preset: logarithms of its time over the default's, by round")
    ]


@dataclass(frozen=True, slots=True)
class Choice:
    """The preset of a class. gain: time of the default over its time, with an interval over the rounds."""

    preset: Annotated[str, about("schedule that was chosen")]
    gain: Annotated[float, about("time of the default over the time of the choice")]
    low: Annotated[float, about("lower end of its interval")]
    high: Annotated[float, about("upper end of its interval")]
    rounds: Annotated[int, about("rounds that it rests on")]


def decided(tuned: Tuned, evidence: Mapping[str, Ratios]) -> Choice:
    """From it and from what was seen before, by class."""
    return choose(pooled(evidence.get(tuned.of, {}), tuned.ratios), tuned.default)


def choose(found: Ratios, default: str) -> Choice:
    """`found` has the presets in the order of the library's table, the simpler ones first, and may lack the default."""
    spans = {preset: _span(values) for preset, values in found.items() if preset != default and values}
    ahead = {preset: span for preset, span in spans.items() if span[1] < -EFFECT and span[2] < 0}
    if not ahead:
        return Choice(default, 1.0, 1.0, 1.0, max(map(len, found.values()), default=0))
    best = min(middle for _, middle, _ in ahead.values())
    preset = next(preset for preset, (_, middle, _) in ahead.items() if middle <= best + EFFECT)
    low, middle, high = (math.exp(-value) for value in spans[preset])
    return Choice(preset, middle, high, low, len(found[preset]))


def pooled(*found: Ratios) -> dict[str, tuple[float, ...]]:
    """Older evidence first."""
    presets = dict.fromkeys(preset for ratios in found for preset in ratios)
    return {
        preset: tuple(value for ratios in found for value in ratios.get(preset, ()))[-MOST:] for preset in presets
    }


def _span(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, between values that hold it surely enough: as many are left out at each end as that allows, so that
    what a few stalled rounds say moves neither."""
    order, count = sorted(values), len(values)
    beyond = list(accumulate(2 * math.comb(count, out) / 2**count for out in range((count + 1) // 2)))
    out = max(0, sum(chance <= 1 - _SURE for chance in beyond) - 1)
    return order[out], median(order), order[-1 - out]
