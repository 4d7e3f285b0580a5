"""Points that are faster than what should limit them: one list, which all that shows them shows."""

from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Suspect:
    """A point that is faster than what should limit it. `explained`: for a known reason. One that
    is not explained is left out of answers.
    """

    point: Annotated[str, about("its name")]
    short: Annotated[str, about("its name for people")]
    roof: Annotated[str, about("what it exceeds")]
    reason: Annotated[str, about("why, as a word")]
    explained: Annotated[bool, about("whether that explains it")]


def suspects(points: pd.DataFrame) -> tuple[Suspect, ...]:
    """Those without an explanation first."""
    found = points[points["above"] != ""].sort_values("suspect", ascending=False, kind="stable")
    return tuple(
        Suspect(row["name"], row["short"], row["above"], row["above_reason"], not row["suspect"])
        for row in found.to_dict("records")
    )
