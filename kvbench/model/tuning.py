"""Which schedule a class of points uses: how the presets were measured, and the choice that
follows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated

from kvbench.intervals import interval
from kvbench.model.annotated import Count, Number, Positive, about

PARTS = {  # the parts of the name of a class of points, in order
    "tier": "instruction set",
    "kernel": "variant and number format",
    "layout": "layout of the cache, with the order and the size of blocks",
    "head_dim": "elements of a row",
    "group": "query heads on a KV head",
    "threads": "one, several that share one L3 cache, or more",
    "level": "level that the rows come from",
}
TUNER = 2  # version of the measurement and of the classes; evidence is pooled within a version
# A preset must beat the default by more than this. Of presets within it the simplest wins.
EFFECT = math.log(1.02)
MOST = 64  # the newest rounds of a class that are kept
_SURE = 0.9  # the probability with which an interval holds the median of the rounds

# by preset: log of its time over the default's, round by round
Ratios = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The preset that was chosen for a class of points."""

    preset: Annotated[str, about("schedule that was chosen")]
    default: Annotated[str, about("the preset that the class has without a measurement")]
    gain: Annotated[Positive, about("ratio: time of the default over time of the choice")]
    low: Annotated[Positive, about("ratio: lower end of its interval over the rounds")]
    high: Annotated[Positive, about("ratio: upper end of its interval over the rounds")]
    rounds: Annotated[Count, about("rounds behind the choice, those of earlier runs included")]


@dataclass(frozen=True, slots=True)
class Tuned:
    """The measurement of a class, and the choice that followed."""

    of: Annotated[str, about("class of points")]
    parts: Annotated[tuple[str, ...], about("parts of the class, in the order of PARTS")]
    choice: Annotated[Choice, about("the preset that was chosen")]
    ratios: Annotated[
        dict[str, tuple[Number, ...]],
        about("ratio: logarithm of a preset's time over the default's, by round"),
    ]


def called(parts: Iterable[str]) -> str:
    """The name of a class of points."""
    return "/".join(parts)


def rescheduled(before: str = "", after: str = "") -> str:
    """How a point's schedule changed; "" if it did not, or if one of them is unknown."""
    return f"schedule ({before} → {after})" if before and after and before != after else ""


def choose(found: Ratios, default: str) -> Choice:
    """Choose the preset of a class from the measured ratios.

    found: presets in the order of the library's table, the simpler ones first. The default may be
    missing.
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
    """Join the ratios of several runs, the oldest first, and keep the newest rounds."""
    presets = dict.fromkeys(preset for ratios in found for preset in ratios)
    return {
        preset: tuple(value for ratios in found for value in ratios.get(preset, ()))[-MOST:]
        for preset in presets
    }
