"""Which schedules a run has chosen, for the points that asked for none."""

from collections.abc import Iterable
from dataclasses import asdict

import pandas as pd

from kvbench.analysis.measured.columns import band, count, table, text
from kvbench.grouping import grouped
from kvbench.model import Tuned
from kvbench.model.tuning import PARTS

SCHEDULES = {
    **{part: text(f"of the points: {about}") for part, about in PARTS.items()},
    "preset": text("schedule that was chosen"),
    "default": text("schedule of these points where nothing is measured"),
    **band("gain", "ratio: time of the default over time of the choice, median of the rounds"),
    "rounds": count("rounds that it rests on, those of earlier runs among them"),
}


def schedules(tunings: Iterable[Tuned]) -> pd.DataFrame:
    """A row for each class of points, as it was tuned first."""
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
