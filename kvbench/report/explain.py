"""What limits a model here: as lines of a terminal, as a page to paste and as a figure's table."""

from collections.abc import Iterator

import pandas as pd

from kvbench.model.explained import Explained
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import explain as words
from kvbench.report.words.phrases import number
from kvbench.texts import markdown as plain
from kvbench.texts import wrapped
from kvbench.units import size


def explain_text(found: Explained) -> list[str]:
    said = [*wrapped(words.titles(found), "", 2), "", *(f"  {line}".rstrip() for line in _table(found))]
    said += ["", *wrapped(words.measured(found), "", 2)] if found.measured else []
    return [*said, "", *wrapped(words.lines(found), "", 2)]


def explain_markdown(found: Explained) -> str:
    said = [*(f"- {plain(line)}" for line in (*words.measured(found), *words.lines(found)))]
    table = ["```text", *_table(found), "```"]
    title, *rest = words.titles(found)
    return "\n".join([f"### {plain(title)}", "", *map(plain, rest), "", *said, "", *table, ""])


def _table(found: Explained) -> Iterator[str]:
    rows, base = [], found.base
    for row in found.rows:
        own = row.of(base)
        read = own.bytes + (found.read or 0)
        facts = {
            "context": row.context,
            "weights": found.read,
            "cache": own.bytes,
            "most": own.most,
            "users": own.users,
        }
        rows.append(facts | {"share": own.bytes / read, "level": row.level} | {c.dtype: c.tokens for c in row.cells})
    rates = (Column(each.dtype, each.dtype + "*" * (not each.decode), number) for each in found.formats)
    tail = (Column("users", "users", "{:.0f}".format), Column("level", "a layer in"))
    table = pd.DataFrame(rows).astype({"weights": "float64", "most": "float64", "users": "float64"})
    yield f"{'':<53}tokens/s with KV in (the core limits some formats)"
    yield from ruled(table, (*_columns(base), *rates, *tail))
    if not all(each.decode for each in found.formats):
        yield "* no decode of it was measured: at most, as plain reads of memory and multiply-adds allow"


def _columns(base: str) -> tuple[Column, ...]:
    return (
        Column("context", "context", "{:,}".format),
        Column("weights", "weights", size),
        Column("cache", f"KV, {base}", size),
        Column("share", "share", "{:.0%}".format),
        Column("most", f"{base} at most", number),
    )


def curves(found: Explained) -> pd.DataFrame:
    """Bytes and tokens per second by context, a line for each format, and one for the weights."""
    rows = []
    for row in found.rows:
        if found.read:
            rows.append({"panel": "bytes", "context": row.context, "line": "weights", "value": found.read})
        for cell in row.cells:
            rows.append({"panel": "bytes", "context": row.context, "line": cell.dtype, "value": cell.bytes})
            rows.append({"panel": "rate", "context": row.context, "line": cell.dtype, "value": cell.tokens})
    return pd.DataFrame(rows)
