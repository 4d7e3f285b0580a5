"""A comparison as lines of text, and as JSON."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, make_dataclass
from typing import Annotated, Any, get_type_hints

from kvbench.model import Comparison, Judged
from kvbench.model.annotated import Printed, about
from kvbench.model.verdict import WORDS
from kvbench.report.lines import WIDTH, wrapped
from kvbench.units import counted, cut

_NAME = 46  # characters of a name, at most
_MISSING = 5  # that are told


def text(found: Comparison, names: Mapping[str, str]) -> list[str]:
    """`names`: short ones of points, by their own."""
    heading = f"{found.verdict}: head {found.head} against base {found.base}, on {found.machine}"
    parts = [
        list(wrapped([heading], "")),
        list(_table("family", found.families, {})),
        list(_table("point", found.points, names)),
        list(wrapped(_lost(found, names))),
        list(wrapped(found.notes)),
    ]
    return [line for part in parts if part for line in ("", *part)][1:]


def compared(found: Comparison) -> Any:
    """As JSON. A row says what it is by its level: a point, and the family that it is of; or a family."""
    facts = {field.name: getattr(found, field.name) for field in fields(found)}
    points = tuple(PointRow(point=row.name, **_row(row)) for row in found.points)
    return Compared(**facts | {"points": points, "families": tuple(FamilyRow(**_row(row)) for row in found.families)})


def _row(row: Judged) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name != "name"}


def _like(kind: type, title: str, base: type = object, /, **other: Any) -> type:
    """A dataclass of the fields of `kind`, of which some are of `other` types, or more, or None for none."""
    hints = get_type_hints(kind, include_extras=True) | other
    kept = [(key, hint) for key, hint in hints.items() if hint is not None]
    return make_dataclass(title, kept, bases=(base,), frozen=True, kw_only=True)


FamilyRow = _like(Judged, "FamilyRow", name=None)
PointRow = _like(Judged, "PointRow", name=None, point=Annotated[str, about("its name")])
Compared = _like(
    Comparison,
    "Compared",
    Printed,
    points=Annotated[tuple[PointRow, ...], about("worst first")],
    families=Annotated[tuple[FamilyRow, ...], about("worst first")],
)


# ---- a table ---------------------------------------------------------------------------------------------------------


def _table(level: str, rows: Sequence[Judged], names: Mapping[str, str]) -> Iterator[str]:
    """Worst first; what there is to say of a row stands below it, but why it cannot be compared stands elsewhere."""
    if not rows:
        return
    said = {row.name: cut(names.get(row.name, row.name), _NAME) for row in rows}
    widths = max(map(len, said.values())), max(len(word) for word in WORDS)
    rates = f"  {'GB/s base → head':>16}" if level == "point" else ""
    yield f"  {'':<{widths[1]}}  {level:<{widths[0]}}{rates}  {'time, % of base’s (95 %)':<24}  {'q':>6}"
    for row in rows:
        cells = f"  {row.verdict:<{widths[1]}}  {said[row.name]:<{widths[0]}}"
        rate = f"  {_rates(row):>16}" if level == "point" else ""
        yield f"{cells}{rate}  {_effect(row):<24}  {_chance(row.q):>6}".rstrip()
        if row.note and row.effect is not None:
            yield from textwrap.wrap(row.note, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    yield f"  {counted(len(rows), level) if level == 'point' else _families(len(rows))}: {_counts(rows)}"


def _families(count: int) -> str:
    return f"{count} famil{'y' if count == 1 else 'ies'}"


def _counts(rows: Sequence[Judged]) -> str:
    words = [row.verdict for row in rows]
    return ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words)


def _rates(row: Judged) -> str:
    known = [None if rate is None else f"{rate:.3g}" for rate in (row.base_gbps, row.head_gbps)]
    return " → ".join(rate or "?" for rate in known) if any(known) else ""


def _effect(row: Judged) -> str:
    """ "+8.1 (+6.9 to +9.3)": of base's time, beside the witness."""
    if row.effect is None:
        return ""
    around = "" if row.low is None or row.high is None else f" ({100 * row.low:+.1f} to {100 * row.high:+.1f})"
    return f"{100 * row.effect:+.1f}{around}"


def _chance(q: float | None) -> str:
    return "" if q is None else f"{q:.2g}" if q >= 0.0005 else "<.0005"


# ---- sentences -------------------------------------------------------------------------------------------------------


def _lost(found: Comparison, names: Mapping[str, str]) -> Iterator[str]:
    """Points that cannot be compared, as far as there is room."""
    if not found.missing:
        return
    yield f"not compared: {counted(len(found.missing), 'point')}"
    for line in found.missing[:_MISSING]:
        name, _, why = line.partition(": ")
        yield f"{names.get(name, name)}: {why}"
    if len(found.missing) > _MISSING:
        yield f"and {len(found.missing) - _MISSING} more: --json"
