"""Which layout, variant, block, order and pages are fastest, and how many threads: from points that
differ in one factor only, timed side by side.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Annotated, Any

import pandas as pd

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Reason, State
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about
from kvbench.model.planes import is_pair


@dataclass(frozen=True, slots=True)
class Choice:
    """The comparison of one factor's values, over points that are otherwise equal, in one level.

    values: every value of the factor, the fastest first. If none clearly leads, the first is one of
    `level`.
    """

    factor: Annotated[str, about("the factor in which the points differ")]
    op: Annotated[str, about("decode, append or bulk")]
    regime: Annotated[str, about("level that feeds the points")]
    dtype: Annotated[str, about("number format of the points; empty if they have several")]
    context: Annotated[int, about("tokens of every sequence; the fewest if contexts differ")]
    longest: Annotated[
        int, about("tokens: the most, if contexts differ because each layout fills the same cache")
    ]
    values: Annotated[tuple[str, ...], about("values of the factor, the fastest first")]
    level: Annotated[tuple[str, ...], about("values that no other value clearly beats")]
    leads: Annotated[
        tuple[Answer, ...],
        about("times as fast: the first value over each of the others; `of` names the other"),
    ]


@dataclass(frozen=True, slots=True)
class Factors:
    choices: Annotated[tuple[Choice, ...], about("by factor, those of the page's workload first")]
    threads: Annotated[Answer | None, about("times as fast as with fewer threads, side by side")]


_CHOICES = "layout", "variant", "block_tokens", "order", "pages"
THREADS = "threads"


def factors(tables: Tables, page: Workload) -> Factors:
    """The choices that were timed in the same rounds."""
    found = tables.contrasts
    every = sorted(choices(found).values(), key=lambda choice: _order(choice, page))
    return Factors(tuple(every), _threads(found, page))


def choices(found: pd.DataFrame) -> dict[str, Choice]:
    """The choices by the name of their visit. `found`: the table of all pairs."""
    asked = found[found["factor"].isin(_CHOICES)]
    return {str(visit): _choice(rows) for visit, rows in asked.groupby("visit", sort=False)}


def _order(choice: Choice, page: Workload) -> tuple[Any, ...]:
    own = any(point in page.points for lead in choice.leads for point in lead.subject)
    kind = choice.op != "decode", is_pair(choice.dtype), not own, choice.regime != "DRAM"
    return *kind, _CHOICES.index(choice.factor), choice.op, choice.regime, -len(choice.values)


def _choice(rows: pd.DataFrame) -> Choice:
    """The choice of one set. Values are ordered by their mean ratio to the others."""
    leads, paces = dict[tuple[str, str], Answer](), defaultdict[str, list[float]](list)
    for row in rows.to_dict("records"):
        for turned, own, other in ((False, "other", "base"), (True, "base", "other")):
            leads[row[own], row[other]] = pairs.answer(row, "lead", row[other], turned)
            paces[row[own]].append((-1) ** turned * math.log(row["ratio"]))
    led = {value for value in paces if _led(value, leads)}
    values = sorted(paces, key=lambda value: (value in led, -fmean(paces[value]), value))
    first = rows.iloc[0]
    return Choice(
        factor=first["factor"],
        op=first["op"],
        regime=first["regime"],
        dtype=first["dtype"] if rows["dtype"].nunique() == 1 else "",
        context=int(min(rows["context"].min(), rows["other_context"].min())),
        longest=int(max(rows["context"].max(), rows["other_context"].max())),
        values=tuple(values),
        level=tuple(value for value in values if value not in led),
        leads=tuple(leads.get((values[0], other)) or _untested(other) for other in values[1:]),
    )


def _led(value: str, leads: Mapping[tuple[str, str], Answer]) -> bool:
    """Whether another value is clearly faster. `leads`: of one value over another."""
    over = (answer for (_, theirs), answer in leads.items() if theirs == value)
    return any(
        each.state is State.DECIDED and each.figure and each.figure.value > 1 for each in over
    )


def _untested(value: str) -> Answer:
    return Answer.untested("lead", Reason.NOT_MEASURED, value)


def _threads(found: pd.DataFrame, page: Workload) -> Answer | None:
    """The most threads over the next fewer: decodes from memory at the page's context, or at the
    nearest that was timed.
    """
    rows = found[(found["factor"] == THREADS) & (found["op"] == "decode")]
    rows = rows[rows["regime"] == "DRAM"]
    if rows.empty:
        return None
    distance = (rows["context"] - page.context).abs()
    rows = rows[distance == distance.min()]
    rows = rows[rows["visit"] == rows["visit"].iloc[0]]
    both = {
        frozenset(int(row[name].removeprefix(f"{THREADS}=")) for name in ("base", "other")): row
        for row in rows.to_dict("records")
    }
    fewer, most = sorted(set().union(*both))[-2:]
    if not (row := both.get(frozenset((fewer, most)))):
        return None
    answer = pairs.answer(row, THREADS, turned=row["base"] == f"{THREADS}={most}")
    return replace(answer, facts={"threads": most, "fewer": fewer, "context": int(row["context"])})
