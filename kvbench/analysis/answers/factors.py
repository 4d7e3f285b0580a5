"""Which layout, variant, block, order and pages; and how many threads: points that differ in that
alone, timed side by side.
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
    """One factor, of points that are else equal, from one level. `values`: every value of the
    factor, the fastest first. Without a clear lead the first is one of `level`.
    """

    factor: Annotated[str, about("what they differ in")]
    op: Annotated[str, about("decode, append or bulk")]
    regime: Annotated[str, about("what feeds them")]
    dtype: Annotated[str, about("number format of the points; or empty where they have several")]
    context: Annotated[int, about("tokens of every sequence: the fewest of them")]
    longest: Annotated[int, about("tokens: the most, where each layout fills the same cache")]
    values: Annotated[tuple[str, ...], about("of the factor, fastest first")]
    level: Annotated[tuple[str, ...], about("those that none clearly leads")]
    leads: Annotated[
        tuple[Answer, ...],
        about("times as fast, the first over each of the others: `of` is its value"),
    ]


@dataclass(frozen=True, slots=True)
class Factors:
    choices: Annotated[tuple[Choice, ...], about("by factor, that of the page's workload first")]
    threads: Annotated[Answer | None, about("times as fast as by fewer threads, side by side")]


_CHOICES = "layout", "variant", "block_tokens", "order", "pages"
THREADS = "threads"


def factors(tables: Tables, page: Workload) -> Factors:
    """Of what was timed in the same rounds."""
    found = tables.contrasts
    every = sorted(choices(found).values(), key=lambda choice: _order(choice, page))
    return Factors(tuple(every), _threads(found, page))


def choices(found: pd.DataFrame) -> dict[str, Choice]:
    """By the name of what was visited. `found`: the table of all pairs."""
    asked = found[found["factor"].isin(_CHOICES)]
    return {str(visit): _choice(rows) for visit, rows in asked.groupby("visit", sort=False)}


def _order(choice: Choice, page: Workload) -> tuple[Any, ...]:
    own = any(point in page.points for lead in choice.leads for point in lead.subject)
    kind = choice.op != "decode", is_pair(choice.dtype), not own, choice.regime != "DRAM"
    return *kind, _CHOICES.index(choice.factor), choice.op, choice.regime, -len(choice.values)


def _choice(rows: pd.DataFrame) -> Choice:
    """Of one set. A value is as fast as it is over the others on average."""
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
    """Whether another is clearly faster. `leads`: of the one value over the other."""
    over = (answer for (_, theirs), answer in leads.items() if theirs == value)
    return any(
        each.state is State.DECIDED and each.figure and each.figure.value > 1 for each in over
    )


def _untested(value: str) -> Answer:
    return Answer.untested("lead", Reason.NOT_MEASURED, value)


def _threads(found: pd.DataFrame, page: Workload) -> Answer | None:
    """Decodes from memory at the page's context, or the nearest that was timed: the most threads
    over the next fewer.
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
