"""How many times as long each engine takes as the fastest of our kernels: a row for each engine and
layout, a column for each number format.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from kvbench.analysis.means.ratios import Visits, complete, judged, logs, mean
from kvbench.model import AGAIN, OURS, Record
from kvbench.native import default_library

_FORMAT = ["dtype", "context", "q_len", "attends"]  # columns of the table of peers
_Logs = Mapping[int, float]  # by launch


@dataclass(frozen=True, slots=True)
class Format:
    """A number format at one context, with so many queries a step and one kind of attention;
    `shapes` are compared in it.
    """

    dtype: str
    context: int
    q_len: int
    attends: str
    shapes: int


@dataclass(frozen=True, slots=True)
class EngineMean:
    """The geometric mean of an engine's time over ours, of the shapes of a format. `low` and
    `high`: its interval, None if launches are too few. `launches`: those that have every shape.
    `shapes`: those in which the engine has a number. `lacking`: the other shapes of the format.
    `share`: of the rate of a read of the same rows, the geometric mean of these shapes. `dtype`:
    the format of both, if it is not the column's; else empty.
    """

    times: float | None
    low: float | None
    high: float | None
    launches: int
    shapes: int
    lacking: int
    share: float | None = None
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class EngineRow:
    """An engine with a layout. `means`: one for each format; None if it was not measured there."""

    engine: str
    layout: str
    means: tuple[EngineMean | None, ...]


@dataclass(frozen=True, slots=True)
class Engines:
    """The table. `ours`: by format, the share of a read that our fastest kernels reach. `contexts`,
    `queries`: whether formats differ in these.

    `left`: engines that have none of the columns.

    Of some cell: `others`: its format is not the column's. `open`: it has no interval. `lacking`:
    it lacks a shape. `empty`: the engine was not measured with the format.
    """

    formats: tuple[Format, ...]
    rows: tuple[EngineRow, ...]
    ours: tuple[float | None, ...]
    left: tuple[str, ...] = ()

    @property
    def contexts(self) -> bool:
        return len({each.context for each in self.formats}) > 1

    @property
    def queries(self) -> bool:
        return len({each.q_len for each in self.formats}) > 1

    @property
    def shapes(self) -> tuple[int, ...]:
        """How many shapes formats have, each number once, rising."""
        return tuple(sorted({each.shapes for each in self.formats}))

    @property
    def cells(self) -> list[EngineMean]:
        return [each for row in self.rows for each in row.means if each]

    @property
    def others(self) -> bool:
        return any(each.dtype for each in self.cells)

    @property
    def enclosed(self) -> bool:
        """Whether a cell has an interval."""
        return any(each.low is not None for each in self.cells)

    @property
    def open(self) -> bool:
        return any(each.times is not None and each.low is None for each in self.cells)

    @property
    def lacking(self) -> bool:
        return any(each.lacking and each.times is not None for each in self.cells)

    @property
    def empty(self) -> bool:
        return any(each is None for row in self.rows for each in row.means)

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.dtype for each in self.formats))


def engines(rows: pd.DataFrame, records: Iterable[Record]) -> Engines:
    """Make the table from that of peers and its records. The engines nearest to ours come first."""
    visits = complete(records)
    formats = [
        (Format(str(dtype), int(context), int(q_len), str(attends), own["cell"].nunique()), own)
        for (dtype, context, q_len, attends), own in rows.groupby(_FORMAT, sort=False)
    ]
    formats.sort(key=lambda each: _order(each[0]))
    theirs = rows[~rows["engine"].isin((OURS, AGAIN))]
    names = list(theirs[["engine", "layout"]].drop_duplicates().itertuples(index=False, name=None))
    found = [
        EngineRow(engine, layout, tuple(_pooled(own, engine, layout, visits) for _, own in formats))
        for engine, layout in names
    ]
    return Engines(
        tuple(each for each, _ in formats),
        tuple(sorted(found, key=_nearest)),
        tuple(_share(own[(own["engine"] == OURS) & (own["word"] == "")]) for _, own in formats),
    )


def _order(own: Format) -> tuple[Any, ...]:
    """Formats as the library has them; others, such as pairs, come last."""
    words = default_library().words("dtype")
    known = own.dtype in words
    place = words.index(own.dtype) if known else len(words)
    return place, own.dtype, own.context, own.q_len, own.attends


def _nearest(row: EngineRow) -> tuple[float, str, str]:
    times = (each.times for each in row.means if each and each.times is not None)
    return min(times, default=math.inf), row.engine, row.layout


def _pooled(own: pd.DataFrame, engine: str, layout: str, visits: Visits) -> EngineMean | None:
    """An engine's mean over a format's cells, judged by launch."""
    cells = [cell for _, cell in own.groupby("cell", sort=False)]
    series = [_beside(cell, engine, layout, visits) for cell in cells]
    tried = [each for each in series if each is not None]
    if not tried:
        return None
    measured = [each for each in tried if each]
    ratio: dict[str, Any] = judged(mean(measured))
    theirs = own[(own["engine"] == engine) & (own["layout"] == layout)]
    return EngineMean(
        times=ratio.get("times"),
        low=ratio.get("low"),
        high=ratio.get("high"),
        launches=ratio["launches"],
        shapes=len(measured),
        lacking=len(cells) - len(measured),
        share=_share(theirs[theirs["times"].notna()]),
    )


def _share(own: pd.DataFrame) -> float | None:
    """The geometric mean of the shares of a read that these rows have; None if no row has one."""
    known = own["share"].dropna().astype(float)
    return math.exp(known.map(math.log).mean()) if len(known) else None


def _beside(cell: pd.DataFrame, engine: str, layout: str, visits: Visits) -> _Logs | None:
    """By launch, how much longer the engine takes than the fastest of ours; None if the cell does
    not have the engine, empty if it has no number there.
    """
    name = cell.loc[(cell["engine"] == engine) & (cell["layout"] == layout), "name"]
    ours = cell.loc[(cell["engine"] == OURS) & (cell["word"] == ""), "name"]
    if name.empty:
        return None
    return logs(visits, name.iloc[0], ours.iloc[0]) if len(ours) else {}


def of_formats(table: Engines, dtypes: Sequence[str], bits: Mapping[str, int]) -> Engines:
    """The columns of these number formats alone, in this order. An engine that does not have a
    format, and has another one of as many bits (`bits`) that has no column, stands there with that.
    """
    wanted = [
        place for dtype in dtypes for place, each in enumerate(table.formats) if each.dtype == dtype
    ]
    rows = (
        replace(row, means=tuple(_or_alike(table, row, place, dtypes, bits) for place in wanted))
        for row in table.rows
    )
    shown = [row for row in rows if any(row.means)]
    names = {row.engine for row in shown}
    return Engines(
        tuple(table.formats[place] for place in wanted),
        tuple(sorted(shown, key=_nearest)),
        tuple(table.ours[place] for place in wanted),
        tuple(dict.fromkeys(row.engine for row in table.rows if row.engine not in names)),
    )


def _or_alike(
    table: Engines, row: EngineRow, place: int, dtypes: Sequence[str], bits: Mapping[str, int]
) -> EngineMean | None:
    asked = table.formats[place]
    if row.means[place] or asked.dtype not in bits:
        return row.means[place]
    alike = (
        replace(mean, dtype=each.dtype)
        for each, mean in zip(table.formats, row.means, strict=True)
        if mean
        and each.dtype not in dtypes
        and bits.get(each.dtype) == bits[asked.dtype]
        and (each.context, each.q_len, each.attends) == (asked.context, asked.q_len, asked.attends)
    )
    return next(alike, None)
