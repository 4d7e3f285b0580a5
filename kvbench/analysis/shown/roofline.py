"""The roofline: what memory, the caches and the core allow, and how close decodes come."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.answer import Figure
from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places
from kvbench.model import PLAIN, Ceiling
from kvbench.model.planes import apart, together
from kvbench.native import default_library
from kvbench.units import cpu_text

_CACHES = ("L1", "L2")
_CLOSE = 1.3  # a cache has a line if its reads are this many times as fast as the next level's
MEMORY, CACHE, PEAK, CORE, POINT = "memory", "cache", "peak", "core speed", "point"
_SAME = (
    *("short", "layout", "variant", "dtype", "group", "residency", "context", "threads"),
    *("footprint", "regime", "ai", "ai_issued"),
)
COLUMNS = {
    "kind": "str",
    "row": "Int64",
    **dict.fromkeys(("short", "layout", "variant", "dtype"), "str"),
    "group": "Int64",
    "residency": "str",
    **dict.fromkeys(("context", "threads", "footprint"), "Int64"),
    "regime": "str",
    "suspect": "str",  # the roof that it exceeds, if suspect
    "computes": "str",  # the probe of its products; two if those of K and of V differ
    **dict.fromkeys(("ai", "ai_issued", "gflops", "gflops_low", "gflops_high"), "float64"),
    **dict.fromkeys(("gbps", "gbps_low", "gbps_high", "tokens_per_second"), "float64"),
    "visits": "Int64",  # visits in which memory had this rate
    "of_visits": "Int64",
}


def roofline(found: Findings) -> pd.DataFrame:
    """The rows of the roofline. Roofs are those of the page's threads."""
    points = decodes_of(found.points)
    points = points[points["ai"].notna()].assign(row=lambda own: own.index)
    rows = list[dict[str, Any]]()
    if len(points):
        own = points[points["threads"] == points["threads"].max()]
        drawn = _drawn(found, points, own)
        rows = [*_reads(found, own), *_decodes(found, drawn), *_cores(found, drawn)]
        used = {op for row in rows if "computes" in row for op in apart(row["computes"])}
        rows += _peaks(found, own, used)
    text = {name: kind for name, kind in COLUMNS.items() if kind == "str"}
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.fillna(dict.fromkeys(text, "")).astype(COLUMNS)


def left_out(found: Findings, table: pd.DataFrame) -> list[str]:
    """Suspects that the roofline (`table`) does not show, because they do no arithmetic."""
    drawn = set(table["row"].dropna())
    row = places(found.points)
    suspects = found.answers.trust.suspects
    return [each.short for each in suspects if row.get(each.point) not in drawn]


def _drawn(found: Findings, points: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """The points to draw: those of answers; for dtypes and groups without an answer, the fastest
    from memory and from a cache; and all suspects.
    """
    answers = found.answers
    named = {each.point for each in answers.decodes.rows}
    named |= {name for gain in answers.l3.gains for name in gain.gain.subject}
    own = own.assign(
        known=own["name"].isin(named),
        near=own["regime"] != "DRAM",
        rate=own["gbps"] * own["ai"],
    )
    own = own.sort_values(["known", "rate"], ascending=False, kind="stable")
    fastest = own.drop_duplicates(["dtype", "group", "near"])
    named |= {*fastest["name"], *(each.point for each in answers.trust.suspects)}
    return points[points["name"].isin(named)]


def _reads(found: Findings, own: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Plain reads: of memory in each of its states, and of caches."""
    reads, before = found.answers.reads, 0.0
    for state in reads.states:
        ends = {"gbps_low": state.low, "gbps_high": state.high}
        visits = {"visits": state.visits, "of_visits": reads.visits}
        yield {"kind": MEMORY, "gbps": state.gbps} | ends | visits
        before = max(before, state.gbps)
    if reads.l3_rate.figure:
        yield {"kind": CACHE, "short": "L3"} | enclosed("gbps", reads.l3_rate)
        before = reads.l3_rate.figure.value
    for level in reversed(_CACHES):
        best = max(_plain(found, own, level), key=lambda each: each.median, default=None)
        if best and best.median >= _CLOSE * before:
            before = best.median
            ends = {"gbps_low": best.low, "gbps_high": best.high}
            yield {"kind": CACHE, "short": level, "gbps": best.median} | ends


def _plain(found: Findings, own: pd.DataFrame, level: str) -> Iterator[Ceiling]:
    for each in _of(found, own):
        if (each.probe.op, each.form, each.level) == ("read", PLAIN, level):
            yield each


def _of(found: Findings, own: pd.DataFrame) -> Iterator[Ceiling]:
    """The ceilings of the points' threads and instruction set."""
    first = own.iloc[0]
    for each in found.ceilings:
        if (cpu_text(each.probe.cpus), each.probe.isa) == (first["cpus"], first["isa"]):
            yield each


def _decodes(found: Findings, drawn: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The points to draw. A point of an answer has the answer's rate."""
    answers = {each.point: each for each in found.answers.decodes.rows}
    suspects = {each.point: each.roof for each in found.answers.trust.suspects}
    for point in drawn.to_dict("records"):
        own = answers.get(point["name"])
        rates = _rates(own.rate.figure if own else None, point)
        speed = own.speed.figure if own else None
        yield {
            "kind": POINT,
            "row": point["row"],
            **{name: point[name] for name in _SAME},
            "suspect": suspects.get(point["name"], ""),
            "computes": _computes(point),
            **rates,
            **{f"gflops{name[4:]}": rate * point["ai"] for name, rate in rates.items()},
            "tokens_per_second": speed.value if speed else None,
        }


def _computes(point: dict[str, Any]) -> str:
    return together(*default_library().computes(point["variant"], point["dtype"]))


def _rates(figure: Figure | None, point: dict[str, Any]) -> dict[str, float]:
    if figure:
        return {"gbps": figure.value, "gbps_low": figure.low, "gbps_high": figure.high}
    return {name: point[name] for name in ("gbps", "gbps_low", "gbps_high")}


def _cores(found: Findings, drawn: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The core speed of each point: its rate over its share of it, both from the same rounds."""
    answers = {each.point: each for each in found.answers.decodes.rows}
    for point in drawn.to_dict("records"):
        own = answers.get(point["name"])
        rate, share = point["gbps"], point["core_fraction"]
        if own and own.rate.figure:
            rate, share = own.rate.figure.value, own.core.figure and own.core.figure.value
        if pd.notna(share):
            same = {name: point[name] for name in ("short", "dtype", "group", "ai", "variant")}
            yield {
                "kind": CORE,
                "row": point["row"],
                **same,
                "computes": _computes(point),
                "gflops": rate / share * point["ai"],
            }


def _peaks(found: Findings, own: pd.DataFrame, used: set[str]) -> Iterator[dict[str, Any]]:
    """The peaks of the products that the drawn points compute."""
    for each in _of(found, own):
        if each.probe.op in used:
            rates = {"gflops": each.median, "gflops_low": each.low, "gflops_high": each.high}
            yield {"kind": PEAK, "short": each.probe.isa, "computes": each.probe.op} | rates
