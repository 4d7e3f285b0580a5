"""Print a comparison as the command does: lines of text, or JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, make_dataclass
from typing import Annotated, Any, get_type_hints

import pandas as pd

from kvbench.exports.causes import headline, sensitivity, sentence, told
from kvbench.exports.wording import change, counts, probability, rates
from kvbench.model import Comparison, Judged
from kvbench.model.annotated import Printed, about
from kvbench.model.verdict import EQUIVALENT
from kvbench.report.ruled import Column, ruled
from kvbench.texts import wrapped
from kvbench.units import counted, cut

_NAME = 46  # characters of a name, at most
_MISSING = 5  # missing points that are listed
_COLUMNS = (
    Column("verdict", ""),
    Column("name", "point"),
    Column("rates", "GB/s base → head"),
    Column("change", "time, % of base’s [95 %]"),
    Column("q", "q"),
)


def text(found: Comparison, names: Mapping[str, str], sides: Sequence[str] = ()) -> list[str]:
    """The comparison as lines. `names`: short names of points, by full name. `sides`: lines on what
    each run measured, placed after the verdict. Missing points are listed as far as there is room.
    """
    lost = [f"not compared: {counted(len(found.missing), 'point')}"] if found.missing else []
    for name, _, why in (line.partition(": ") for line in found.missing[:_MISSING]):
        lost.append(f"{names.get(name, name)}: {why}")
    if len(found.missing) > _MISSING:
        lost.append(f"and {len(found.missing) - _MISSING} more: --json")
    head = [
        f"{found.verdict}: {headline(found)}",
        f"head {found.head} against base {found.base}, on {found.machine}",
    ]
    told_of = (sentence(line, names.get(line.judged.name, "")) for line in told(found))
    seen = filter(None, [sensitivity(found)])
    parts = (
        wrapped(head, ""),
        sides,
        wrapped(told_of),
        _table(found.points, names),
        wrapped(seen, ""),
        wrapped(lost),
    )
    return [
        line for part in map(list, (*parts, wrapped(found.notes))) if part for line in ("", *part)
    ][1:]


def _table(rows: Sequence[Judged], names: Mapping[str, str]) -> Iterator[str]:
    """The table of points, each with its note below; reasons of missing points stand elsewhere."""
    if not rows:
        return
    table = pd.DataFrame(
        {
            "verdict": row.verdict,
            "name": cut(names.get(row.name, row.name), _NAME),
            "rates": rates(row),
            "change": "" if row.effect is None else f"{change(row)}{_small(row)}",
            "q": "" if row.q is None else probability(row.q),
        }
        for row in rows
    )
    head, *lines = ruled(table, _COLUMNS)
    yield f"  {head}"
    for row, line in zip(rows, lines, strict=True):
        yield f"  {line}"
        if row.note and row.effect is not None and not _small(row):
            yield from wrapped([row.note], " " * 6)
    yield f"  {counts(rows, 'point')}"


def _small(row: Judged) -> str:
    """The direction of an interval that lies on one side but does not count as a change."""
    if row.effect is None or row.verdict != EQUIVALENT or not row.note:
        return ""
    return " slower" if row.effect > 0 else " faster"


def compared(found: Comparison) -> Any:
    """The comparison as JSON. A row tells by its level what it is: a point, with its family; or a
    family.
    """
    facts = {field.name: getattr(found, field.name) for field in fields(found)}
    points = tuple(PointRow(point=row.name, **_row(row)) for row in found.points)
    return Compared(
        **facts
        | {
            "points": points,
            "families": tuple(FamilyRow(**_row(row)) for row in found.families),
        }
    )


def _row(row: Judged) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name != "name"}


def _like(kind: type, title: str, base: type = object, /, **other: Any) -> Any:
    """A dataclass with the fields of `kind`. `other` adds fields, replaces types, or removes a
    field (None).
    """
    hints = get_type_hints(kind, include_extras=True) | other
    kept = [(key, hint) for key, hint in hints.items() if hint is not None]
    return make_dataclass(title, kept, bases=(base,), frozen=True, kw_only=True)


FamilyRow: Any = _like(Judged, "FamilyRow", name=None)
PointRow: Any = _like(Judged, "PointRow", name=None, point=Annotated[str, about("its name")])
Compared = _like(
    Comparison,
    "Compared",
    Printed,
    points=Annotated[tuple[PointRow, ...], about("worst first")],
    families=Annotated[tuple[FamilyRow, ...], about("worst first")],
)
