"""What points say of published models: tokens per second at most, and which contexts of a layer fit
L3.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import pandas as pd

from kvbench.analysis.limits.claims import CORE
from kvbench.analysis.measured.columns import POINT, band, count, number, table, text
from kvbench.model import HEADS, Machine
from kvbench.model.geometry import Geometry
from kvbench.model.point import EVEN
from kvbench.regime import suggestion, windows


class Note(StrEnum):
    """Of a model's tokens per second."""

    NOTHING = ""
    BEYOND = "more tokens than the model was made for"
    LACKING = "no point has the window of some layers"


TOKENS = {
    "model": text("all of this shape"),
    "layers": count("of the model"),
    **{name: POINT[name] for name in ("layout", "dtype", "variant", "threads", "batch", "context")},
    "residency": text("hot, rotate or evicted"),
    "name": POINT["name"],
    **band(
        "tokens_per_second",
        "tokens per second: of the whole batch, were reading the cache all that a step does",
    ),
    "note": text("why there is no number, or what to know about it; else empty"),
    "lacks": count("tokens: of a layer's window that no point has; 0: of a layer without one"),
}
FITS = {
    "model": text("its name"),
    **{name: POINT[name] for name in ("dtype", "scale", "threads")},
    "cpus": text("of the threads, as a list such as 0-3,8"),
    "max_context": count("tokens: of the model"),
    "bytes_per_token": number("bytes: of one layer and one sequence"),
    "l3_low_context": count("tokens: from where L3 feeds a layer; null: never"),
    "l3_high_context": count("tokens: up to where L3 feeds a layer; null: never"),
    "l3": text("the word of most of its points there"),
    "example": text("the clearest of them"),
    "reason": text("why"),
}
NOT_TESTED = "not tested"


def tokens(points: pd.DataFrame, models: Sequence[Geometry]) -> pd.DataFrame:
    """A row for each point that a model's layers would be, from memory; those of one shape and
    depth share it. A step takes at least as long as all its layers together.
    """
    far = _decodes(points)
    far = far[far["regime"] == "DRAM"]
    heads = {tuple(getattr(model, name) for name in HEADS) for model in models}
    known = [each in heads for each in far[list(HEADS)].itertuples(index=False, name=None)]
    far = far.loc[known, [*POINT, *(f"seconds{end}" for end in ("", "_low", "_high"))]]
    alike, found = [name for name in POINT if name not in ("name", "window")], []
    for _, rows in far.groupby(alike, dropna=False, sort=False):
        context = int(rows["context"].iloc[0])
        by_window = {
            int(w) if 0 < (w := row["window"]) < context else 0: row
            for row in rows.to_dict("records")
        }
        any_row = next(iter(by_window.values()))
        shared: dict[tuple[int, int, int, Note], list[str]] = {}
        for model in models:
            if all(getattr(model, name) == any_row[name] for name in HEADS):
                sliding = model.sliding(context)
                window = model.window if sliding else 0
                # it is told, whether or not the model was made for it
                note = Note.BEYOND if context > model.max_context else Note.NOTHING
                shared.setdefault((model.layers, sliding, window, note), []).append(model.name)
        for (layers, sliding, window, note), names in shared.items():
            parts = {0: layers - sliding, window: sliding} if window else {0: layers}
            parts = {limit: count for limit, count in parts.items() if count}
            told = {
                **{name: any_row[name] for name in TOKENS if name in POINT and name != "layers"},
                "model": ", ".join(sorted(names)),
                "layers": layers,
                "note": note.value,
            }
            found.append(told | _rate(by_window, parts, layers))
    return table(found, TOKENS)


def _decodes(points: pd.DataFrame) -> pd.DataFrame:
    """With a time, of sequences that all hold the context."""
    whole = (points["op"] == "decode") & (points["lengths"] == EVEN)
    return points[whole & points["seconds"].notna()]


def _rate(
    by_window: Mapping[int, Mapping[str, Any]], parts: Mapping[int, int], layers: int
) -> dict[str, Any]:
    """`parts`: how many layers have which window."""
    lacking = [limit for limit in parts if limit not in by_window]
    if lacking:
        return {"note": Note.LACKING.value, "lacks": lacking[0]}
    row = by_window[min(parts)]  # 0, no window, before any window
    found = {"name": row["name"]}
    for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
        seconds = sum(count * by_window[limit][f"seconds{other}"] for limit, count in parts.items())
        found[f"tokens_per_second{end}"] = row["batch"] / seconds
    return found


_Cpus = Mapping[str, Sequence[int]]  # by the name of a point


def fits(
    points: pd.DataFrame, machine: Machine, models: Sequence[Geometry], cpus: _Cpus
) -> pd.DataFrame:
    """A row for each model, dtype and CPU set that has points: which contexts of a layer that
    attends to everything lie in L3, and what its points in there say.
    """
    decodes, rows = _decodes(points), []
    setting = ["dtype", "scale", "threads", "cpus"]
    for model in models:
        own = decodes[
            (decodes[list(HEADS)] == [getattr(model, name) for name in HEADS]).all(axis=1)
        ]
        for key, here in own.groupby(setting):
            one = here.iloc[0]
            token = float(
                one["kv_bytes"]
                / one["batch"]
                / min(one["window"] or one["context"], one["context"])
            )
            rows.append(
                {
                    **dict(zip(setting, key, strict=True)),
                    "model": model.name,
                    "max_context": model.max_context,
                    "bytes_per_token": token,
                    **_verdict(here[here["regime"] == "L3"]),
                    **_contexts(machine, cpus[one["name"]], token, model.max_context),
                }
            )
    return table(rows, FITS)


def _verdict(inside: pd.DataFrame) -> dict[str, str]:
    """The word of most of these points, and the clearest of them."""
    words = inside["l3"][inside["l3"] != ""].value_counts()
    if words.empty:
        return {"l3": NOT_TESTED, "reason": "no point of this shape lies in L3"}
    usual = inside[inside["l3"] == words.index[0]]
    row = clearest(usual)
    others = "".join(f"; {count} {word}" for word, count in words.items() if word != words.index[0])
    return {"l3": words.index[0], "example": row["short"], "reason": f"{row['l3_reason']}{others}"}


def clearest(points: pd.DataFrame) -> pd.Series:
    """Among points with one verdict the one furthest from what the same threads read from memory;
    where the core is the limit, the one that comes to most of that.
    """
    ratios = points["l3_decode"].fillna(1.0)
    apart = (
        ratios if (points["l3"] == CORE).all() else ratios.map(lambda ratio: abs(math.log(ratio)))
    )
    return points.loc[apart.idxmax()]


def _contexts(
    machine: Machine, cpus: Sequence[int], bytes_per_token: float, most: int
) -> dict[str, Any]:
    """From the windows of the L3 domains, the work being split evenly over the threads."""
    if closed := suggestion(machine, cpus):
        return {"reason": closed}
    found = windows(machine, cpus)
    low = max(window.low / window.threads for window in found) * len(cpus) / bytes_per_token
    high = min(window.high / window.threads for window in found) * len(cpus) / bytes_per_token
    if math.ceil(low) > most:
        return {"reason": f"even its longest context, {most} tokens, stays in caches before L3"}
    return {"l3_low_context": math.ceil(low), "l3_high_context": min(math.floor(high), most)}
