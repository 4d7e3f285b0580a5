"""Which schedules a run has chosen, for the points that asked for none."""

from collections.abc import Iterable
from dataclasses import asdict

import pandas as pd

from kvbench.analysis.measured.columns import band, count, table, text
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
    first: dict[str, Tuned] = {}
    for tuned in tunings:
        first.setdefault(tuned.of, tuned)
    rows = []
    for _, tuned in sorted(first.items()):
        choice = tuned.choice
        row = dict(zip(PARTS, tuned.parts, strict=False)) | asdict(choice)
        rows.append(row | {"gain_low": choice.low, "gain_high": choice.high})
    return table(rows, SCHEDULES)
