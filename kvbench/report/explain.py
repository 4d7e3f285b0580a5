"""kvbench explain: what limits a model, as lines of a terminal and as Markdown."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd

from kvbench.model.explained import Beside, Drafting, Engine, Explained, Row, Server
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import paragraphs
from kvbench.report.words.phrases import level, number
from kvbench.texts import markdown as plain
from kvbench.texts import wrapped
from kvbench.units import duration, size

_PREDICTED = ("dtype", "context", "reads", "weights", "attention", "low", "high")
_HELD = ("tokens", "off")
_NEAR, _FAR = 8192, 131072  # tokens: the two contexts of the sentences
_DRAFTED = 4096  # tokens: the first context of the sentences on drafting


def lines(found: Explained) -> list[str]:
    """The five lines on a model that need no table."""
    return paragraphs("explain", "lines", found, _row(found, _NEAR), _row(found, _FAR))


def _row(found: Explained, tokens: int) -> Row:
    return max(
        (row for row in found.rows if row.context <= tokens),
        key=lambda row: row.context,
        default=found.rows[0],
    )


def drafted_lines(found: Explained) -> list[str]:
    """Sentences on drafting: for each format, then for all of them."""
    if not found.drafting:
        return []
    said = list[str]()
    for own in found.drafting.formats:
        near = [row for row in own.rows if row.context <= _DRAFTED] or own.rows
        told = list(dict.fromkeys((near[-1], own.rows[-1])))
        said += paragraphs("explain", "drafting", found, own, told)
    return said + paragraphs("explain", "verifying", found)


def explain_text(found: Explained) -> list[str]:
    """The explanation as lines of a terminal."""
    said = [
        *wrapped(paragraphs("explain", "titles", found), "", 2),
        "",
        *(f"  {line}" for line in _table(found)),
    ]
    for own in found.pairs:
        said += ["", *wrapped(paragraphs("explain", "beside", found, own), "", 2), ""]
        said += (f"  {line}" for line in _beside(own))
    for part in (paragraphs("explain", "measured", found), lines(found)):
        said += ["", *wrapped(part, "", 2)] if part else []
    if found.drafting:
        said += ["", *(f"  {line}" for line in _drafted(found.drafting)), ""]
        said += wrapped(drafted_lines(found), "", 2)
    if found.server:
        said += ["", *wrapped(paragraphs("explain", "server", found), "", 2), ""]
        said += (f"  {line}" for line in _server(found.server))
    if found.engine:
        said += ["", *(f"  {line}" for line in _engine(found.engine)), ""]
        said += wrapped(paragraphs("engine", "lines", found), "", 2)
    return [line.rstrip() for line in said]


def explain_markdown(found: Explained) -> str:
    """The explanation as Markdown, to paste into an issue."""
    title, *rest = paragraphs("explain", "titles", found)
    said = [
        f"- {plain(line)}" for line in (*paragraphs("explain", "measured", found), *lines(found))
    ]
    table = ["```text", *_table(found), "```"]
    for own in found.pairs:
        said += [f"- {plain(line)}" for line in paragraphs("explain", "beside", found, own)]
        table += ["", "```text", *_beside(own), "```"]
    if found.drafting:
        said += [f"- {plain(line)}" for line in drafted_lines(found)]
        table += ["", "```text", *_drafted(found.drafting), "```"]
    if found.server:
        said += [f"- {plain(line)}" for line in paragraphs("explain", "server", found)]
        table += ["", "```text", *_server(found.server), "```"]
    if found.engine:
        said += [f"- {plain(line)}" for line in paragraphs("engine", "lines", found)]
        table += ["", "```text", *_engine(found.engine), "```"]
    return "\n".join([f"### {plain(title)}", "", *map(plain, rest), "", *said, "", *table, ""])


def _beside(found: Beside) -> list[str]:
    """A table: both halves of a pair of formats, then the pair."""
    columns = (
        Column("dtype", "KV"),
        Column("bytes_per_token", "a token", size),
        Column("error", "error", "{:.2%}".format),
        Column("error_heavy", "heavy keys", "{:.2%}".format),
        Column("alone", "tokens/s of KV alone", number),
        Column("tokens", "with the weights", number),
    )
    rows = pd.DataFrame([asdict(each) for each in found.formats])
    names = [each.dtype + "*" * (not each.decode) for each in found.formats]
    return ruled(
        rows.assign(dtype=names).astype({"alone": "float64", "tokens": "float64"}), columns
    )


def _drafted(found: Drafting) -> list[str]:
    """A table: verifying steps beside plain steps, by format and context."""
    rows = [
        {
            "dtype": own.dtype,
            "context": row.context,
            "plain": row.plain.high,
            "step": row.step.high,
            "before": row.before.low,
            "low": row.tokens.low,
            "high": row.tokens.high,
            "least": row.times.low,
            "most": row.times.high,
            "spare": row.spare.low if row.spare.low > 0 else None,
            "pays": row.pays,
        }
        for own in found.formats
        for row in own.rows
    ]
    columns = (
        Column("dtype", "KV"),
        Column("context", "context", "{:,}".format),
        Column("plain", "plain step", duration),
        Column("step", "verifying", duration),
        Column("before", "tokens/s", number),
        Column("low", "with drafts", number),
        Column("high", "to", number),
        Column("least", "times", "{:.2f}".format),
        Column("most", "to", "{:.2f}".format),
        Column("spare", "may cost", duration),
        Column("pays", "pays"),
    )
    return ruled(pd.DataFrame(rows).astype({"spare": "float64"}), columns)


def _server(found: Server) -> list[str]:
    """A table of tokens per second by context and format; a c marks those that the cores limit."""
    rows = dict[int, dict[str, Any]]()
    for cell in found.cells:
        mark = "c" if cell.limit == "core" else " "
        row = rows.setdefault(cell.context, {"context": cell.context})
        row[cell.dtype] = number(cell.tokens) + mark
    dtypes = dict.fromkeys(cell.dtype for cell in found.cells)
    columns = (
        Column("context", "context", "{:,}".format),
        *(Column(dtype, f"{dtype} ") for dtype in dtypes),
    )
    return ruled(pd.DataFrame(list(rows.values())), columns)


def _engine(found: Engine) -> list[str]:
    """A table: predicted beside measured tokens per second, by format and context."""
    rows = [
        {name: getattr(row, name) for name in _PREDICTED}
        | {name: row.held and getattr(row.held, name) for name in _HELD}
        | {"predicted": row.tokens}
        for row in found.rows
    ]
    columns = (
        Column("dtype", "KV"),
        Column("context", "context", "{:,}".format),
        Column("reads", "weights from", level),
        Column("weights", "they take", duration),
        Column("attention", "attention", duration),
        Column("predicted", "tokens/s", number),
        Column("low", "from", number),
        Column("high", "to", number),
        Column("tokens", "measured", number),
        Column("off", "predicted is off", "{:+.0%}".format),
    )
    kinds = dict.fromkeys(_HELD, "float64")
    shown = columns if any(row.held for row in found.rows) else columns[: -len(_HELD)]
    return ruled(pd.DataFrame(rows).astype(kinds), shown)


def _table(found: Explained) -> Iterator[str]:
    rows = []
    for row in found.rows:
        own = row.of(found.base)
        facts: dict[str, Any] = {
            "context": row.context,
            "weights": found.read,
            "cache": own.bytes,
            "most": own.most,
            "share": own.bytes / (own.bytes + (found.read or 0)),
            "users": own.users,
            "level": row.level,
        }
        rows.append(facts | {cell.dtype: cell.tokens for cell in row.cells})
    columns = (
        Column("context", "context", "{:,}".format),
        Column("weights", "weights", size),
        Column("cache", f"KV, {found.base}", size),
        Column("share", "share", "{:.0%}".format),
        Column("most", f"{found.base} at most", number),
        *(
            Column(each.dtype, each.dtype + "*" * (not each.decode), number)
            for each in found.formats
        ),
        Column("users", "users", "{:.0f}".format),
        Column("level", "a layer in"),
    )
    yield f"{'':<53}tokens/s by format of KV (the core limits some formats)"
    yield from ruled(
        pd.DataFrame(rows).astype(dict.fromkeys(("weights", "most", "users"), "float64")), columns
    )
    if not all(each.decode for each in found.formats):
        yield (
            "* not measured: an upper bound, from the best read of memory and the peak of"
            " multiply-adds"
        )
