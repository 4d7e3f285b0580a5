"""Tables of formats of K and V, and of what attention does to scores."""

from collections.abc import Callable, Mapping
from typing import Any

from kvbench.analysis.answers import Answers
from kvbench.analysis.answers.mixed import Mixed, Other
from kvbench.analysis.means.findings import Findings
from kvbench.report.cells import NOTHING, answered, texts, titled, within, worded
from kvbench.report.sheet import Cell, Columns, Sheet, plain, sheet
from kvbench.report.words import said as words
from kvbench.report.words.phrases import narrow
from kvbench.units import size


def mixed(found: Answers) -> Sheet:
    """The page's workload: a row for each format and variant."""
    own = found.mixed
    kinds = list(dict.fromkeys(each.keys for row in own.formats for each in row.placed))
    columns: Columns = {
        "format": ("label", str),
        "bytes a token": ("bytes", size),
        "tokens/s": answered("speed", narrow),
        **{f"error, % of the output, {keys} keys": (_placed(own, keys), str) for keys in kinds},
        "over K's format": answered(Other.K, narrow),
        "over V's format": answered(Other.V, narrow),
        "over by token": answered(Other.BY_TOKEN, narrow),
        "what limits": worded("limit", "first", "limit"),
        **{
            f"format error, % of the output, {keys} keys": (_format_error(keys), percent)
            for keys in kinds
        },
    }
    rows = [
        {name: getattr(each, name) for name in each.__slots__}
        | {"label": words("mixed", "label", each)}
        | {other: against.times if (against := each.over(other)) else NOTHING for other in Other}
        for each in own.formats
    ]
    title, about = texts("formats")
    return sheet("formats", title, f"{about} {words('mixed', 'error')}", columns, rows)


def percent(error: float) -> str:
    return words("mixed", "percent", error)


def _placed(own: Mixed, keys: str) -> Callable[[Mapping[str, Any]], Cell | None]:
    """A column: the error, and the place of the format among all others."""

    def read(row: Mapping[str, Any]) -> Cell | None:
        found = next((each for each in row["placed"] if each.keys == keys), None)
        if found is None:
            return None
        return Cell(f"{percent(found.error)}, {words('mixed', 'place', own, found)}", found.error)

    return read


def _format_error(keys: str) -> Callable[[Mapping[str, Any]], float | None]:
    def read(row: Mapping[str, Any]) -> float | None:
        return next((each.format_error for each in row["placed"] if each.keys == keys), None)

    return read


def costs(found: Findings) -> Sheet:
    """The cost of each operation on scores, over the same decode without it."""
    columns: Columns = {
        "with": ("what", str),
        "times as long": answered("times"),
        "interval": (lambda row: within(row["times"]), str),
        "verdict": (lambda row: str(row["times"].state), str),
        **plain("model", "dtype", "variant", "layout"),
        "heads a KV head": ("group", str),
        "wide": ("head_dim", str),
        "context": ("context", "{:,}".format),
        "window": (lambda row: row["window"] or None, "{:,}".format),
        **plain("threads", "batch", "level"),
    }
    own = found.answers.mixed.costs
    rows = [{name: getattr(each, name) for name in each.__slots__} for each in own]
    places = {name: place for place, name in enumerate(found.points["name"])}
    return titled("costs", columns, rows, [places[each.point] for each in own])
