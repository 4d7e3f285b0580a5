"""Latency of memory over the GB/s that are moved meanwhile: by place, load and share."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.answer import Figure
from kvbench.analysis.answers.latency import Latency, Place, Step
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places
from kvbench.model.chases import IDLE, SPIN

BUSY = "busy"  # the load column of the row with a place's `busy`
L3 = "L3"
_SAME = ("op", "dtype", "layout", "variant", "chase", "model", "context", "threads")
_FIGURES = ("load", "gbps", "ns", "tail", "times")
_NAMES = {"load": "load_gbps", "ns": "ns", "tail": "ns_p95", "times": "times_idle"}
COLUMNS = {
    "row": "Int64",
    "place": "Int64",  # number of the place, from 0 on
    **dict.fromkeys(("op", "dtype", "layout", "variant", "chase", "model"), "str"),
    **dict.fromkeys(("context", "threads"), "Int64"),
    "load": "str",  # read, copy or the op of the point; idle and spin: none; L3; busy: see above
    "share": "Int64",  # %, of the rate of the load
    **{
        f"{_NAMES.get(name, name)}{end}": "float64"
        for name in _FIGURES
        for end in ("", "_low", "_high")
    },
}


def latency(found: Findings) -> pd.DataFrame:
    own, known = found.answers.latency, places(found.points)
    rows = [
        {name: getattr(place, name) for name in _SAME}
        | {"row": known[place.point], "place": number}
        | row
        for number, place in enumerate(own.places)
        for row in _rows(own, place)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _rows(found: Latency, place: Place) -> Iterator[dict[str, Any]]:
    moved = {"share": 0, "gbps": place.moved.value}
    yield {"load": IDLE} | moved | _ends("ns", place.idle)
    if place.spins:
        yield {"load": SPIN} | moved | _ends("ns", place.spin)
    for level in found.idle:
        if level.level == L3:
            yield {"load": L3} | _ends("ns", level.ns)
    if place.busy.tested:
        where = {"load": BUSY, "gbps": place.busy.facts["gbps"]}
        yield where | enclosed("times_idle", place.busy)
    for curve in place.curves:
        for step in curve.steps:
            yield {"load": curve.load, "share": step.share} | _step(step)


def _step(step: Step) -> dict[str, Any]:
    return {
        key: value
        for name in _FIGURES
        for key, value in _ends(_NAMES.get(name, name), getattr(step, name)).items()
    }


def _ends(name: str, found: Figure) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
