"""Which schedule a class of points is read by: what was measured of the presets, and the choice
that follows from it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated

from kvbench.intervals import interval
from kvbench.model.annotated import Count, Number, Positive, about

PARTS = {  # of the name of a class of points, in its order
    "tier": "instruction set",
    "kernel": "variant and number format",
    "layout": "of the cache, with the order and the size of blocks",
    "head_dim": "elements of a row",
    "group": "query heads on a KV head",
    "threads": "one, several of one L3 cache, or more",
    "level": "where the rows come from",
}
TUNER = 2  # version of what is measured and of the classes: evidence of another one is not pooled
# the default stays unless another preset is faster by more; within it the simpler one wins
EFFECT = math.log(1.02)
MOST = 64  # rounds of a class that are kept, the newest
_SURE = 0.9  # with which an interval holds the median of the rounds

# by preset: log of its time over the default's, round by round
Ratios = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The preset of a class of points."""

    preset: Annotated[str, about("schedule that was chosen")]
    default: Annotated[str, about("the one that the class has where nothing is measured")]
    gain: Annotated[Positive, about("ratio: time of the default over time of the choice")]
    low: Annotated[Positive, about("ratio: lower end of its interval over the rounds")]
    high: Annotated[Positive, about("ratio: upper end of its interval over the rounds")]
    rounds: Annotated[Count, about("rounds that it rests on, those of earlier runs among them")]


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was measured of a class, and the choice that it led to."""

    of: Annotated[str, about("the class of points")]
    parts: Annotated[tuple[str, ...], about("what the class consists of, in the order of PARTS")]
    choice: Annotated[Choice, about("the preset")]
    ratios: Annotated[
        dict[str, tuple[Number, ...]],
        about("ratio: logarithm of a preset's time over the default's, by round"),
    ]


def called(parts: Iterable[str]) -> str:
    """A class of points, in one word."""
    return "/".join(parts)


def rescheduled(before: str = "", after: str = "") -> str:
    """How a point's schedule changed; "" where it did not, or one of them is not known."""
    return f"schedule ({before} → {after})" if before and after and before != after else ""


def choose(found: Ratios, default: str) -> Choice:
    """`found` has the presets in the order of the library's table, the simpler ones first, and may
    lack the default.
    """
    others = {preset: values for preset, values in found.items() if preset != default and values}
    spans = {
        preset: (median(values), *interval(values, _SURE)) for preset, values in others.items()
    }
    ahead = {preset: span for preset, span in spans.items() if span[0] < -EFFECT and span[2] < 0}
    if not ahead:
        return Choice(default, default, 1.0, 1.0, 1.0, max(map(len, found.values()), default=0))
    best = min(middle for middle, _, _ in ahead.values())
    preset = next(preset for preset, (middle, _, _) in ahead.items() if middle <= best + EFFECT)
    middle, high, low = (math.exp(-value) for value in spans[preset])
    return Choice(preset, default, middle, low, high, len(found[preset]))


def pooled(*found: Ratios) -> dict[str, tuple[float, ...]]:
    """Older evidence first."""
    presets = dict.fromkeys(preset for ratios in found for preset in ratios)
    return {
        preset: tuple(value for ratios in found for value in ratios.get(preset, ()))[-MOST:]
        for preset in presets
    }
