"""Which dtype decodes fastest, and what limits each: the fastest kernel of each dtype, timed side
by side in one line.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Basis, Figure, Held, Reason, State, Unit
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.limits.frames import known
from kvbench.analysis.means.formats import format_errors
from kvbench.model.annotated import about
from kvbench.model.contrast import KERNEL
from kvbench.native import default_library

_LIMITS = {  # reasons by the word in the table of points
    "memory": Reason.MEMORY,
    "rows": Reason.ROWS,
    "core": Reason.CORE,
    "both": Reason.BOTH,
    "neither": Reason.NEITHER,
    "not clear": Reason.NOT_CLEAR,
}


@dataclass(frozen=True, slots=True)
class Decode:
    """The fastest kernel of a dtype."""

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    variant: Annotated[str, about("variant of the kernel")]
    isa: Annotated[str, about("instruction set")]
    point: Annotated[str, about("its name")]
    speed: Annotated[Answer, about("tokens per second of the workload")]
    rate: Annotated[Answer, about("GB/s of compulsory bytes")]
    lead: Annotated[Answer, about("times as fast as the fastest dtype, side by side")]
    memory: Annotated[Answer, about("share of plain reads of memory")]
    rows: Annotated[Answer, about("share of reads of its own rows")]
    core: Annotated[Answer, about("share of its core speed")]
    limit: Annotated[Answer, about("what limits it; `reason` is the word")]
    format_errors: Annotated[
        dict[str, float],
        about("share of the output by which the format changes it, by kind of keys"),
    ]
    kernel_error: Annotated[
        float | None, about("absolute: largest error of an output element, on the stored codes")
    ]


@dataclass(frozen=True, slots=True)
class Decodes:
    """The fastest kernels by dtype, the fastest first. The subject of `fastest` has several points
    if they are level.
    """

    fastest: Annotated[
        Answer, about("tokens per second; its subject includes points that are level")
    ]
    next: Annotated[Answer | None, about("times as fast as the first dtype that is clearly slower")]
    rows: Annotated[tuple[Decode, ...], about("by dtype, fastest first")]


def decodes(tables: Tables, page: Workload) -> Decodes:
    """The fastest kernel of each dtype, from the line. If no line was timed: from points that were
    each measured in visits of their own. Suspect points are left out.
    """
    beside = not tables.line.empty
    points = tables.line if beside else tables.points
    found = _fastest(tables.tokens, points, page)
    if not found:
        reason = Reason.SUSPECT if page.points else Reason.NO_MODEL
        return Decodes(Answer.untested("fastest", reason), None, ())
    basis = Basis.ROUNDS if beside else Basis.APART
    first, own = found[0]["name"], points.set_index("name", drop=False)
    line = tables.contrasts[tables.contrasts["factor"] == KERNEL]
    rows = tuple(
        _decode(
            token,
            own.loc[token["name"]].to_dict(),
            pairs.lead(line, token["name"], first, of=token["dtype"]),
            basis,
        )
        for token in found
    )
    behind = [row for row in rows[1:] if row.lead.state is State.DECIDED]
    following = pairs.lead(line, first, behind[0].point, "next") if behind else None
    return Decodes(_first(rows, behind), following, rows)


def _fastest(tokens: pd.DataFrame, points: pd.DataFrame, page: Workload) -> list[Row]:
    """Rows of `tokens`: one for each dtype, the fastest first."""
    rows = tokens[tokens["tokens_per_second"].notna()]
    rows = rows.loc[[page.model in names.split(", ") for names in rows["model"]]]
    rows = rows[rows["name"].isin(page.points) & rows["name"].isin(points["name"])]
    suspect = points["suspect"].fillna(False).astype(bool)
    rows = rows[~rows["name"].isin(points["name"][suspect])]
    rows = rows.sort_values("tokens_per_second", ascending=False)
    found: list[Row] = rows.drop_duplicates("dtype").to_dict("records")
    return found


def _first(rows: Sequence[Decode], behind: Sequence[Decode]) -> Answer:
    """The answer about the fastest dtype. For visits of their own, points whose intervals overlap
    may be level, so nothing is decided.
    """
    speed, others = rows[0].speed, [row for row in rows[1:] if row not in behind]
    state, reason = State.OPEN, Reason.NONE
    if speed.basis is Basis.APART and others:
        low = speed.figure.low if speed.figure else 0.0
        others = [row for row in others if row.speed.figure and row.speed.figure.high >= low]
        state, reason = State.NOT_TESTED, Reason.NOT_MEASURED
    elif all(row.lead.state is State.LEVEL for row in others):
        state = State.LEVEL if others else State.DECIDED
    subject = (*speed.subject, *(row.point for row in others))
    return replace(speed, question="fastest", subject=subject).because(state, reason)


def _decode(token: Row, point: Row, lead: Answer, basis: Basis) -> Decode:
    dtype, launches = point["dtype"], int(point["launches"])

    def told(question: str, row: Row, column: str, unit: Unit, held: Held = Held.NOTHING) -> Answer:
        if pd.isna(row.get(column)):
            return Answer.untested(question, Reason.NOT_MEASURED, dtype)
        value, low, high = (row.get(f"{column}{end}", math.nan) for end in ("", "_low", "_high"))
        own = Basis.ROUNDS if held else basis
        figure = Figure(value, low, high, unit)
        return Answer(question, dtype, (point["name"],), figure, held, "", own, launches=launches)

    return Decode(
        **{name: point[name] for name in ("dtype", "layout", "variant", "isa")},
        point=point["name"],
        speed=told("speed", token, "tokens_per_second", Unit.TOKENS),
        rate=told("rate", point, "gbps", Unit.GBPS),
        lead=lead,
        memory=told("memory", point, "memory_share", Unit.SHARE, Held.MEMORY),
        rows=told("rows", point, "efficiency", Unit.SHARE, Held.ROWS),
        core=told("core", point, "core_fraction", Unit.SHARE, Held.CORE),
        limit=limited(point),
        format_errors=_format_errors(dtype, point["scale"]),
        kernel_error=known(point["max_abs_err"]),
    )


def limited(point: Row) -> Answer:
    """What limits a point, from its column `bound`."""
    word = point.get("bound", "")
    if word not in _LIMITS:
        return Answer.untested("limit", Reason.NOT_MEASURED, point["dtype"])
    return Answer(
        "limit",
        point["dtype"],
        (point["name"],),
        None,
        basis=Basis.ROUNDS,
        state=State.OPEN if _LIMITS[word] is Reason.NOT_CLEAR else State.DECIDED,
        reason=_LIMITS[word],
        launches=int(point["launches"]),
    )


def _format_errors(dtype: str, scale: str) -> dict[str, float]:
    """The errors of a format; empty if the library does not have the format."""
    words = default_library().words
    return format_errors(dtype, scale) if dtype in words("dtype") else {}
