"""Whether L3 helps: a decode of one layer that stays in L3 over the same decode from memory, in the
same rounds. How much of that remains if other memory is read between passes. And how many tokens
fit L3.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import pandas as pd

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Figure, Reason, State, Unit
from kvbench.analysis.answers.between import Family, members, of_family
from kvbench.analysis.answers.decodes import limited
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.measured.families import alone, usual
from kvbench.model import HEADS
from kvbench.model.annotated import about
from kvbench.model.geometry import Geometry
from kvbench.model.shape import EVEN
from kvbench.regime import THRESHOLDS, windows


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one dtype and number of query heads per KV head. It is from the point that was
    also timed with other bytes between passes; if there is none, from the middle layout.
    """

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    group: Annotated[int, about("query heads per KV head")]
    model: Annotated[str, about("model of the layer; empty if unknown")]
    context: Annotated[int, about("tokens of the layer")]
    threads: Annotated[int, about("threads that decode")]
    layouts: Annotated[int, about("number of layouts that were timed")]
    gain: Annotated[Answer, about("times as fast as the same decode from memory")]
    limit: Annotated[Answer, about("what limits it in L3; `reason` is the word")]
    middle: Annotated[bool, about("whether its gain is the middle one of several layouts")]


@dataclass(frozen=True, slots=True)
class Fits:
    """The contexts of one dtype that fit L3."""

    model: Annotated[str, about("its name")]
    dtype: Annotated[str, about("number format of the cache")]
    threads: Annotated[int, about("threads that decode")]
    bytes_per_token: Annotated[float, about("bytes: one token of one layer and one sequence")]
    layer: Annotated[int | None, about("tokens: that fit for one layer; null if none fits")]
    model_wide: Annotated[
        int | None, about("tokens: that fit for all layers together; null if none fits")
    ]


@dataclass(frozen=True, slots=True)
class L3:
    """The answers about L3. `gains`: the one behind `helps` first, then those of the page's model,
    then the others, each by gain.
    """

    helps: Annotated[
        Answer, about("the middle gain of the page's model, else of everything that was tested")
    ]
    gains: Annotated[tuple[Gain, ...], about("by dtype and query heads per KV head")]
    families: Annotated[
        tuple[Family, ...],
        about("how much of a gain remains if other bytes are read between passes"),
    ]
    fits: Annotated[tuple[Fits, ...], about("for every dtype that was measured")]
    usable: Annotated[float, about("share of the declared L3 that counts as usable for a walk")]

    def family(self, gain: Gain) -> Family | None:
        """The family of the gain's point."""
        return next((each for each in self.families if each.point in gain.gain.subject), None)


def l3(tables: Tables, page: Workload) -> L3:
    points = alone(tables.points)
    timed = points[points["l3_gain"].notna()]
    tested = timed[~timed["suspect"].fillna(False).astype(bool)]
    faster = tested[tested["l3_reads_low"] > 1]  # otherwise L3 hardly feeds the point
    families = _families(tables, page, faster)
    gains = _gains(tables, page, faster, {each.point for each in families})
    if gains:
        helps = gains[0].gain
    elif len(tested):
        row = middle(tested, "l3_reads")
        times, point = float(row["l3_reads"]), str(row["name"])
        helps = Answer.untested("L3 helps", Reason.NOT_FASTER, times=times, point=point)
    elif len(timed):
        helps = Answer.untested("L3 helps", Reason.SUSPECT)
    else:
        helps = untested("L3 helps", tables, page)
    return L3(helps, gains, tuple(families), tuple(_fits(tables, page)), THRESHOLDS.last)


def cpus_of(tables: Tables, page: Workload) -> tuple[int, ...]:
    """The CPUs of the workload's threads."""
    named = (tables.cpus[name] for name in page.points)
    others = (cpus for cpus in tables.cpus.values() if len(cpus) == page.threads)
    return next(chain(named, others), tables.machine.allowed)


def middle(rows: pd.DataFrame, column: str) -> pd.Series:
    """The row with the median value; for an even number of rows, the smaller of the two middle
    ones.
    """
    return rows.sort_values(column, kind="stable").iloc[(len(rows) - 1) // 2]


def figure(row: Row, name: str, unit: Unit) -> Figure:
    """A figure from a column and its interval in a row of a table."""
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return Figure(value, low, high, unit)


def untested(question: str, tables: Tables, page: Workload) -> Answer:
    """Why the question is open if no decode in L3 was timed beside memory."""
    points, cpus = alone(tables.points), cpus_of(tables, page)
    if ((points["regime"] == "L3") & points["gbps"].notna()).any():
        return Answer.untested(question, Reason.NOT_MEASURED)
    found = windows(tables.machine, cpus)
    if sum(window.threads for window in found) < len(cpus):
        return Answer.untested(question, Reason.NO_CACHE)
    if _tokens(tables, page, 1.0):
        return Answer.untested(question, Reason.NO_L3)
    others = min(window.largest_threads for window in found)
    return Answer.untested(question, Reason.CLOSED, threads=len(cpus), largest_threads=others)


# ---- gains ---------------------------------------------------------------------------------------


def _gains(
    tables: Tables, page: Workload, tested: pd.DataFrame, known: set[str]
) -> tuple[Gain, ...]:
    """The gains, in order. `known`: points for which the remaining gain is known."""
    if (tested["threads"] == page.threads).any():
        tested = tested[tested["threads"] == page.threads]
    else:
        tested = tested[tested["threads"] == tested["threads"].max()]
    alike = tested.groupby(["dtype", "group", *HEADS])
    judged = _judged(tables)
    found = []
    for _, rows in alike:
        own = rows[rows["name"].isin(known)]
        row = middle(own if len(own) else rows, "l3_gain").to_dict()
        several = len(rows) > 1 and not len(own)
        found.append(_gain(row, len(rows), several, judged[row["name"]], tables.models, page))
    return tuple(_ordered(found, page))


def _judged(tables: Tables) -> dict[str, Row]:
    """Rows of gains, by the name of the point."""
    asked = tables.contrasts[tables.contrasts["factor"] == pairs.RESIDENCY]
    return {row["base_name"]: row for row in asked.to_dict("records")}


def _families(tables: Tables, page: Workload, tested: pd.DataFrame) -> list[Family]:
    """The families, those with the page's threads and model first. No measurement affects the
    order.
    """
    judged, found = _judged(tables), []
    every = members(tables)
    for row in tested[tested["name"].isin(every)].to_dict("records"):
        name = model_of(row, tables.models, page)
        model = next((each for each in tables.models if each.name == name), None)
        gain = _told(row, judged[row["name"]])
        found += [of_family(row, model, gain, tables, every[row["name"]])]

    def place(own: Family) -> tuple[Any, ...]:
        first = own.threads != page.threads, own.model != page.model
        return *first, own.model, -own.threads, own.dtype, own.context, own.point

    return sorted(filter(None, found), key=place)


def _ordered(gains: list[Gain], page: Workload) -> list[Gain]:
    gains = sorted(gains, key=lambda each: (each.model != page.model, -_times(each)))
    own = [each for each in gains if each.model == page.model] or gains
    first = own[len(own) // 2 : len(own) // 2 + 1]  # of two middle ones the smaller
    return [*first, *(each for each in gains if each not in first)]


def _gain(
    row: Row,
    layouts: int,
    middle: bool,
    judged: Row,
    models: Sequence[Geometry],
    page: Workload,
) -> Gain:
    return Gain(
        **{name: row[name] for name in ("dtype", "layout", "group", "context", "threads")},
        model=model_of(row, models, page),
        layouts=layouts,
        gain=_told(row, judged),
        limit=limited(row),
        middle=middle,
    )


def _told(row: Row, judged: Row) -> Answer:
    """The gain of a point, with what limits it."""
    limit, gain = limited(row), pairs.answer(judged, "L3 helps", row["dtype"])
    told = State.NOT_TESTED not in (gain.state, limit.state)
    return gain.because(gain.state, limit.reason) if told else gain


def model_of(row: Row, models: Sequence[Geometry], page: Workload) -> str:
    """The model with these heads: the page's if it has them, else the first."""
    own = [*HEADS, "v_dim"]
    alike = [each.name for each in models if all(getattr(each, name) == row[name] for name in own)]
    return page.model if page.model in alike else next(iter(alike), "")


def _times(gain: Gain) -> float:
    return gain.gain.figure.value if gain.gain.figure else 0.0


# ---- contexts that fit ---------------------------------------------------------------------------


def _fits(tables: Tables, page: Workload) -> Iterator[Fits]:
    """The contexts that fit, from the bytes of a token in a layer of the page's model and the
    window of L3.
    """
    model = next((each for each in tables.models if each.name == page.model), None)
    if model is None:
        return
    points = usual(tables.points)
    own = points[(points["op"] == "decode") & points["kv_bytes"].notna()]
    own = own[own["lengths"] == EVEN]
    own = own[(own[list(HEADS)] == [getattr(model, name) for name in HEADS]).all(axis=1)]
    for dtype, rows in own.groupby("dtype"):
        row = rows.iloc[0]
        attended = min(row["window"] or row["context"], row["context"])
        token = float(row["kv_bytes"] / row["batch"] / attended)
        each, whole = (_tokens(tables, page, token * layers) for layers in (1, model.layers))
        yield Fits(
            model=model.name,
            dtype=str(dtype),
            threads=page.threads,
            bytes_per_token=token,
            layer=each,
            model_wide=whole,
        )


def _tokens(tables: Tables, page: Workload, token: float) -> int | None:
    """The most tokens that L3 feeds, of `token` bytes each and split evenly over the threads; None
    if no number of tokens lies in its window.
    """
    cpus = cpus_of(tables, page)
    found = windows(tables.machine, cpus)
    if sum(window.threads for window in found) < len(cpus):
        return None
    low = max(window.low / window.threads for window in found) * len(cpus)
    high = min(window.high / window.threads for window in found) * len(cpus)
    most = math.floor(high / token)
    return most if most and low <= most * token else None
