"""The schedules that a run chose for points without a schedule of their own."""

from collections.abc import Iterable
from dataclasses import asdict

import pandas as pd

from kvbench.analysis.measured.columns import band, count, table, text
from kvbench.grouping import grouped
from kvbench.model import Tuned
from kvbench.model.tuning import PARTS

SCHEDULES = {
    **{part: text(f"class of points: {about}") for part, about in PARTS.items()},
    "preset": text("schedule that was chosen"),
    "default": text("schedule of these points without a measurement"),
    **band("gain", "ratio: time of the default over time of the choice, median of the rounds"),
    "rounds": count("rounds behind the choice, those of earlier runs included"),
}


def schedules(tunings: Iterable[Tuned]) -> pd.DataFrame:
    """A row for each class of points, from its first tuning."""
    classes = sorted(grouped((tuned.of, tuned) for tuned in tunings).items())
    rows = (
        {
            **dict(zip(PARTS, first.parts, strict=False)),
            **asdict(first.choice),
            "gain_low": first.choice.low,
            "gain_high": first.choice.high,
        }
        for _, (first, *_) in classes
    )
    return table(rows, SCHEDULES)
