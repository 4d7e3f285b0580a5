"""The gallery: a page that lists machines by their scores."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kvbench.report.page import rendered
from kvbench.report.sheet import Cell, Columns, Sheet, plain, sheet
from kvbench.report.words import said
from kvbench.report.words.phrases import number
from kvbench.score import WIDTHS, Score
from kvbench.store import write_text
from kvbench.store.files import writing
from kvbench.units import counted

_ABOUT = (
    "Tokens per second of attention alone: Llama-3-8B's 32 layers, 4,096 tokens, one sequence, from"
    " memory, all cores. 16 bits are exact; 8 and 4 bits are the fastest verified kernel of that"
    " width. Tuned: the schedule was chosen by a measurement on that machine; base: it was not. In"
    " brackets: the interval, and the share of plain reads of memory in the same run. Valid means"
    " consistent, not true: edited or impossible numbers are found, carefully invented ones are"
    " not. Compare rows only if their version is the same and both are valid or noisy; rows whose"
    " intervals overlap are tied. An open score used other kernels or another build. An invalid"
    " score has no figures but a reason. A virtual machine stands for itself, not for its host."
)
_RANKS = {"valid": 0, "noisy": 0, "open": 1}


def write_gallery(page: Path, scores: Sequence[Score], notes: Sequence[str]) -> Path:
    """Write the page, and return its path. notes: scores that could not be read."""
    title = f"kvbench scores of {counted(len(scores), 'machine')}"
    text = rendered(
        "gallery.html",
        title=title,
        subtitle="Sort by any column.",
        table=table(scores),
        notes=notes,
    )
    with writing(page, "then call kvbench report again"):
        write_text(page, text)
    return page


def table(scores: Iterable[Score]) -> Sheet:
    """A row for each score: valid and noisy scores first, then by speed with 16 bits."""
    columns: Columns = {**plain("machine", "state", "class"), "cores": ("threads", str)}
    for bits in WIDTHS:
        columns |= {
            f"{bits} bits, tuned": (f"tuned {bits}", str),
            f"base, {bits}": (f"base {bits}", number),
        }
    columns |= {"reads, GB/s": ("read_gbps", number), **plain("date", "version", "kernels", "why")}
    order = sorted(scores, key=lambda each: (_RANKS.get(each.state, 2), -_first(each)))
    return sheet("scores", "Machines", _ABOUT, columns, list(map(_row, order)))


def _first(found: Score) -> float:
    return found.figures[0].tuned.tokens if found.figures else 0.0


def _row(found: Score) -> dict[str, Any]:
    own = {} if found.state == "invalid" else {each.bits: each for each in found.figures}
    kind = said("score", "kind", found)
    row: dict[str, Any] = {
        "class": "virtual" if kind.startswith("virtual") else kind,
        "date": found.created[:10],
        "version": found.tag,
        **{name: getattr(found, name) for name in ("machine", "state", "threads", "read_gbps")},
    }
    for bits in WIDTHS:
        each, row[f"tuned {bits}"], row[f"base {bits}"] = own.get(bits), None, None
        if each:
            share, rate = f", {each.share:.0%}" if each.share else "", each.tuned
            text = f"{number(rate.tokens)} ({number(rate.low)}..{number(rate.high)}{share})"
            row |= {
                f"tuned {bits}": Cell(text, rate.tokens),
                f"base {bits}": each.base and each.base.tokens,
            }
    kernels = ", ".join(said("score", "kernel", each) for each in own.values())
    return row | {"kernels": kernels, "why": said("score", "why", found)}
