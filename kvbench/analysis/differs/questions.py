"""What a run leaves open: whether a slice in L3 is read faster than memory, and which of two values
of a factor is faster. Where more launches may decide it, about how many, and of which points.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.analysis.differs.contrasts import OVERALL, SAME, UNKNOWN, contrasts, overall
from kvbench.analysis.limits import frames
from kvbench.analysis.limits.bounds import UNSTABLE
from kvbench.analysis.looks import needs
from kvbench.analysis.measured.columns import short_names
from kvbench.model import Contrast, Machine, Record
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Open:
    """A question that more launches may decide."""

    question: Annotated[str, about("which ratio of what")]
    ratio: Annotated[float, about("ratio: as it is now")]
    low: Annotated[float, about("ratio: low end of its interval")]
    high: Annotated[float, about("ratio: high end of its interval")]
    launches: Annotated[int, about("launches that it has")]
    needs: Annotated[int, about("launches that it takes in all, about, were they as noisy")]
    points: Annotated[tuple[str, ...], about("names of what a launch must visit for it")]


def questions(
    records: Iterable[Record], points: pd.DataFrame, pairs: pd.DataFrame, together: pd.DataFrame
) -> tuple[Open, ...]:
    """From the tables of points, with short names, of contrasts, and of all their pairs
    together.
    """
    return (*_of_l3(points), *_of_contrasts(records, pairs, together))


def open_questions(records: Sequence[Record], machine: Machine, most: int) -> tuple[Open, ...]:
    """`most`: launches that the run can have."""
    points = frames.points(records, machine, most=most)
    pairs = contrasts(records, points, most)
    return questions(records, points.assign(short=short_names(points)), pairs, overall(pairs, most))


def _of_l3(points: pd.DataFrame) -> Iterator[Open]:
    for row in points[points["l3_needs"].notna()].to_dict("records"):
        which, what = (
            ("l3_decode", "decodes")
            if row["l3"] == UNSTABLE
            else ("l3_reads", "reads of the slice")
        )
        ratio, low, high = (float(row[which + end]) for end in ("", "_low", "_high"))
        said = f"{what} over reads of memory: {row['short']}"
        launches, needs = int(row["launches"]), int(row["l3_needs"])
        yield Open(said, ratio, low, high, launches, needs, (row["name"],))


def _of_contrasts(
    records: Iterable[Record], pairs: pd.DataFrame, together: pd.DataFrame
) -> Iterator[Open]:
    """What was timed in the same rounds is visited as the set that it was."""
    sets = {each.point for each in records if isinstance(each.point, Contrast)}
    visit = {(each.factor, point.name): each.name for each in sets for point in each.points}
    keys = list(OVERALL)[:5]
    own = dict(iter(pairs.groupby(keys)))
    for row in together[together["word"].isin([SAME, UNKNOWN])].to_dict("records"):
        of = own[tuple(row[key] for key in keys)]
        of = of[of["beside"] == row["beside"]]
        ends, launches = (
            (row["ratio"], row["ratio_low"], row["ratio_high"]),
            int(of["launches"].max()),
        )
        if most := needs(*ends, launches):
            said = (
                f"{row['factor']} of {row['op']} from {row['regime']}: {row['other']} over"
                f" {row['base']}"
            )
            names = dict.fromkeys((*of["base_name"], *of["other_name"]))
            if row["beside"]:
                names = dict.fromkeys(visit[row["factor"], name] for name in names)
            yield Open(said, *ends, launches, most, tuple(names))
