"""Rules on names: a number is of what it is said to be of, and rows of one name have one value."""

import re
from collections.abc import Iterator

import numpy as np

from tests.report.consistency.answered import DTYPE
from tests.report.consistency.claims import NUMBER, Conflict, number
from tests.report.consistency.reading import Report, Row

_AGAINST = r"against|over|as fast|\brate of|of (?:its|the) time|plain reads|memory, (?:side|same)"


def nameless(report: Report) -> Iterator[Conflict]:
    """A ratio says what it is held against, before or after it."""
    for said in report.said:
        for found in re.finditer(rf"\b({NUMBER})x(?: \([^)]*\))?(?! ?[a-z])", said.text):
            if not re.search(_AGAINST, said.text):
                yield Conflict("nameless", f"{found[0]}: {said.text} ({said.place})", "no whole")


def best_read(report: Report) -> Iterator[Conflict]:
    """No plain read of memory is above the fastest read."""
    rows = report.figures.get("staircase", [])
    plain = [float(row["gbps"]) for row in rows if row["kind"] == "memory"][:1]
    for row in rows:
        if (
            row["kind"] == "read"
            and row["regime"] == "DRAM"
            and float(row["gbps"]) < max(plain, default=0)
        ):
            shown = f"{row.get('short') or row.get('label')}: {float(row['gbps']):.4g} GB/s"
            yield Conflict("best_read", shown, f"plain read: {plain[0]:.4g} (staircase.csv)")


def servers(report: Report) -> Iterator[Conflict]:
    """In the stretch that a sentence gives a dtype, no other line of the figure is higher."""
    rows = report.figures.get("servers", [])
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["kind"] == "line":
            at = float(row["bandwidth"]), float(row["tokens_per_second"])
            lines.setdefault(row["dtype"], []).append(at)
    said = rf"({DTYPE}) is fastest from ({NUMBER}) to ({NUMBER}) GB/s a core"
    for place, found in report.sentences(said):
        middle = (number(found[2])[0] + number(found[3])[0]) / 2
        rates = {dtype: float(np.interp(middle, *zip(*line))) for dtype, line in lines.items()}
        if rates and rates[found[1]] < 0.999 * max(rates.values()):
            best = max(rates, key=rates.get)
            yield Conflict("servers", f"{found[0]} ({place})", f"{best} at {middle:.3g} GB/s")


def step(report: Report) -> Iterator[Conflict]:
    """A share of a decode step is of the page's fastest, or names another."""
    speed = re.match(rf"({NUMBER}) tokens/s", report.tiles.get("Fastest decode", ""))
    said = (
        rf"token takes ({NUMBER}) µs[^.]*(?:\.\d[^.]*)* in all layers[^.]*\. That is ({NUMBER})% of"
        r" a decode step"
    )
    for place, found in report.sentences(said):
        share, half = number(found[2])
        own = 1e-4 * number(found[1])[0] * number(speed[1])[0] if speed else share
        if abs(own - share) > half + 0.02 * own:
            yield Conflict("step", f"{found[0]} ({place})", f"of the fastest decode: {own:.2g}%")


_LABELS = ("what differs", "base", "other", "op", "dtype", "layout", "variant", "context")
_LABELS += ("threads", "level")


def same_row(report: Report) -> Iterator[Conflict]:
    """Two rows of one name have one value."""
    for table in report.with_heads("what differs", "base", "other", "context"):
        seen: dict[tuple[str, ...], Row] = {}
        for row in table.rows:
            name = tuple(row.get(label, "") for label in _LABELS)
            other = seen.setdefault(name, row)
            if other["interval"] != row["interval"]:
                told = f"{' '.join(name)}: {other['interval']}"
                yield Conflict("same_row", told, row["interval"])


NAMED = (nameless, best_read, servers, step, same_row)
