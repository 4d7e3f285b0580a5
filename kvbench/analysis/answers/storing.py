"""What storing a token costs, and which layouts differ."""

from dataclasses import dataclass, replace
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers.answer import Answer, Figure, Held, Reason, Unit
from kvbench.analysis.answers.factors import Choice
from kvbench.analysis.answers.l3 import figure, middle
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.measured.families import alone
from kvbench.model import HEADS
from kvbench.model.annotated import about
from kvbench.model.point import DEFAULTS
from kvbench.model.shape import EVEN

_USUAL = ("dtype", "layout")
_STORES = ("append", "bulk")


@dataclass(frozen=True, slots=True)
class Storing:
    token: Annotated[Answer, about("seconds: one token in all layers")]
    share: Annotated[
        Answer, about("share of a decode step, roughly, because both come from visits of their own")
    ]
    layouts: Annotated[tuple[Choice, ...], about("of append and bulk, side by side")]


def storing(tables: Tables, page: Workload, choices: tuple[Choice, ...]) -> Storing:
    own = tuple(choice for choice in choices if choice.op in _STORES)
    rows = _appends(tables, page)
    if rows.empty:
        reason = Reason.NOT_MEASURED if page.model else Reason.NO_MODEL
        return Storing(
            Answer.untested("storing", reason), Answer.untested("storing share", reason), own
        )
    row = rows.iloc[0]
    one = figure(row, "seconds", Unit.SECONDS)
    token = Answer(
        "storing",
        str(row["dtype"]),
        (str(row["name"]),),
        _times(one, page.layers, page.layers, page.layers),
        launches=int(row["launches"]),
    )
    return Storing(token, _share(tables, page, row, token), own)


def _appends(tables: Tables, page: Workload) -> pd.DataFrame:
    """The appends of the page's model, those most like its workload first: by threads, usual dtype
    and layout, and context.
    """
    points = tables.points
    model = next((each for each in tables.models if each.name == page.model), None)
    if model is None:
        return points.iloc[:0]
    own = alone(points[(points["op"] == "append") & points["seconds"].notna()])
    own = own[(own["batch"] == page.batch) & (own["lengths"] == EVEN)]
    own = own[(own[list(HEADS)] == [getattr(model, name) for name in HEADS]).all(axis=1)]
    order = own.assign(
        fewer=(own["threads"] - page.threads).abs(),
        **{f"other_{name}": own[name] != DEFAULTS[name] for name in _USUAL},
        away=(own["context"] - page.context).abs(),
    )
    by = ["fewer", *(f"other_{name}" for name in _USUAL), "away"]
    return order.sort_values(by, kind="stable")


def _share(tables: Tables, page: Workload, row: pd.Series, token: Answer) -> Answer:
    """The share of a decode step with the same dtype and layout."""
    steps = tables.tokens[tables.tokens["name"].isin(page.points)]
    steps = steps[(steps[list(_USUAL)] == row[list(_USUAL)]).all(axis=1)]
    if steps.empty or token.figure is None:
        return Answer.untested("storing share", Reason.NOT_MEASURED)
    step = middle(steps, "tokens_per_second")
    rate = figure(step, "tokens_per_second", Unit.TOKENS)
    steps_a_second = (each / page.batch for each in (rate.value, rate.low, rate.high))
    share = replace(_times(token.figure, *steps_a_second), unit=Unit.SHARE)
    return Answer(
        "storing share",
        token.of,
        token.subject,
        share,
        Held.STEP,
        str(step["name"]),
        launches=token.launches,
    )


def _times(found: Figure, value: float, low: float, high: float) -> Figure:
    return Figure(found.value * value, found.low * low, found.high * high, found.unit)
