"""Compute what points mean for published models: the most tokens per second."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import pandas as pd

from kvbench.analysis.measured.columns import POINT, band, count, table, text
from kvbench.analysis.measured.families import undisturbed
from kvbench.grouping import grouped
from kvbench.model import DEFAULTS, HEADS, MODEL_SAYS
from kvbench.model.geometry import Geometry
from kvbench.model.shape import EVEN

_LAYER = (*HEADS, *MODEL_SAYS)  # what tells layers of models apart, except windows

_Kind = tuple[object, ...]


class Note(StrEnum):
    """A remark on a model's tokens per second."""

    NOTHING = ""
    BEYOND = "more tokens than the model was made for"
    LACKING = "no point has the window of some layers"


TOKENS = {
    "model": text("all models of this shape"),
    "layers": count("layers of the model"),
    **{name: POINT[name] for name in ("layout", "dtype", "variant", "threads", "batch", "context")},
    "k_scale": POINT["k_scale"],
    "residency": text("hot, rotate or evicted"),
    "name": POINT["name"],
    **band(
        "tokens_per_second",
        "tokens per second: of the whole batch, if a step did nothing but read the cache",
    ),
    "note": text("why the number is missing, or a remark on it; else empty"),
    "lacks": count(
        "tokens: the window of some layers that no point has; 0: layers without a window"
    ),
}


def tokens(points: pd.DataFrame, models: Sequence[Geometry]) -> pd.DataFrame:
    """A row for each decode from memory that matches the layers of a model. Models with the same
    shape and depth share a row. A step takes at least as long as all its layers together.
    """
    far = _decodes(points)
    far = far[far["regime"] == "DRAM"]
    own = _own_layers(far, models)
    known = [each in {*own.values()} for each in _kinds(far)]
    far = far.loc[known, [*POINT, *(f"seconds{end}" for end in ("", "_low", "_high"))]]
    alike, found = [name for name in POINT if name not in ("name", "window")], []
    # missing values count as equal; a frame for each of thousands of groups would take seconds
    keys = far[alike].astype(object).where(far[alike].notna(), None)
    every = zip(keys.itertuples(index=False, name=None), far.to_dict("records"), strict=True)
    for rows in grouped(every).values():
        context = int(rows[0]["context"])
        by_window = {int(w) if 0 < (w := row["window"]) < context else 0: row for row in rows}
        any_row = next(iter(by_window.values()))
        shared: dict[tuple[int, int, int, Note], list[str]] = {}
        for model in models:
            if own[model.name] == tuple(any_row[name] for name in _LAYER):
                sliding = model.sliding(context)
                window = model.window if sliding else 0
                # the number is given even if the model was not made for that context
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


def _own_layers(rows: pd.DataFrame, models: Sequence[Geometry]) -> dict[str, _Kind]:
    """The kind of layer of each model. If the run has no such points, what the model does to scores
    is left out: older runs could not measure it.
    """
    timed = set(_kinds(rows))
    found = {}
    for model in models:
        own = tuple(getattr(model, name) for name in _LAYER)
        plain = (*own[: len(HEADS)], *(DEFAULTS[name] for name in MODEL_SAYS))
        found[model.name] = own if own in timed else plain
    return found


def _kinds(rows: pd.DataFrame) -> Iterator[_Kind]:
    yield from rows[list(_LAYER)].itertuples(index=False, name=None)


def _decodes(points: pd.DataFrame) -> pd.DataFrame:
    """Decodes that have a time and read nothing between passes, whose sequences all hold the
    context, and whose scores have no more operations than models have.
    """
    whole = (points["op"] == "decode") & (points["lengths"] == EVEN)
    whole &= (points["alibi"] == 0) & (points["kept"] == 0)
    return undisturbed(points[whole & points["seconds"].notna()])


def _rate(
    by_window: Mapping[int, Mapping[str, Any]], parts: Mapping[int, int], layers: int
) -> dict[str, Any]:
    """Tokens per second with its interval. `parts`: how many layers have which window."""
    lacking = [limit for limit in parts if limit not in by_window]
    if lacking:
        return {"note": Note.LACKING.value, "lacks": lacking[0]}
    row = by_window[min(parts)]  # 0 (no window) comes first
    found = {"name": row["name"]}
    for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
        seconds = sum(count * by_window[limit][f"seconds{other}"] for limit, count in parts.items())
        found[f"tokens_per_second{end}"] = row["batch"] / seconds
    return found
