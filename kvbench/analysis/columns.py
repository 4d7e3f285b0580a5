"""The columns of the tables, and what they hold of a point as it was asked for."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import pandas as pd

from kvbench.model import FIELDS, Point, Probe, Shape
from kvbench.units import cpu_text

_TEXT, _COUNT, _NUMBER = "str", "Int64", "float64"  # what does not apply is "", <NA>, NaN

_KINDS = {"word": _TEXT, "prefetch": _TEXT, "cpus": _TEXT, "flag": "boolean"}  # of a field; all others count

# A point, in full. `layers_asked` 0: as many slices as it takes to leave the caches behind.
BY_COLUMN = {field.column or field.name: field for field in FIELDS if field.column is not None}
POINT = {"name": _TEXT, "kernel": _TEXT}
POINT |= {name: _KINDS.get(field.kind, _COUNT) for name, field in BY_COLUMN.items()}

# What points and probes have in common, or are grouped by. `bytes` are a probe's footprint.
EITHER = {name: POINT[name] for name in ("name", "kernel", "op", "layout", "dtype", "isa")}
EITHER |= {name: POINT[name] for name in ("batch", "group", "context", "window", "threads", "cpus", "pages")}
EITHER |= {"residency": _TEXT, "bytes": _COUNT, "distance": _COUNT}

SAMPLE = {
    "program": _TEXT,
    **dict.fromkeys(("launch", "part", "round", "passes"), _COUNT),
    **dict.fromkeys(("seconds", "seconds_per_pass", "gbps", "gflops", "skew"), _NUMBER),
    **dict.fromkeys(("switches", "faults"), _COUNT),
    "steal": _NUMBER,
    "throttled": _COUNT,
    "disturbed": "boolean",
}

# What was found out about a point. Rates are compulsory bytes over time; low and high enclose what they are named for.
FOUND = {
    **dict.fromkeys(("launches", "samples", "failed"), _COUNT),  # failed: launches without a number
    **dict.fromkeys(("seconds", "seconds_low", "seconds_high", "spread", "confidence"), _NUMBER),  # of a pass
    "unstable": "boolean",  # the middle half of the launches' seconds is wider than SPREAD of their median
    "outliers": _COUNT,  # launches whose seconds lie FAR_OUT of the others
    **dict.fromkeys(("gbps", "gbps_low", "gbps_high"), _NUMBER),
    "witness": _TEXT,  # the program that efficiency is a share of
    **dict.fromkeys(("efficiency", "efficiency_low", "efficiency_high", "efficiency_spread"), _NUMBER),
    **dict.fromkeys(("twin_gbps", "copy_gbps", "copy_fraction", "core_gbps", "core_fraction"), _NUMBER),
    "ceiling_op": _TEXT,
    **dict.fromkeys(("ceiling_gbps", "ceiling_low", "ceiling_high", "ceiling_fraction"), _NUMBER),
    "ceiling_note": _TEXT,  # why there is none
    **dict.fromkeys(("above", "above_reason"), _TEXT),  # the roof that it exceeds, and why that can be
    **dict.fromkeys(("dram_gbps", "dram_low", "dram_high", "fma_gflops", "gflops"), _NUMBER),
    **dict.fromkeys(("ai", "ai_issued"), _NUMBER),  # FLOPs for each compulsory, and for each issued byte
    **dict.fromkeys(("regime", "regime_reason", "regime_confidence"), _TEXT),
    **dict.fromkeys(("bound", "bound_reason", "l3", "l3_reason"), _TEXT),
    **dict.fromkeys(("layers", "slice_bytes"), _COUNT),
    **dict.fromkeys(("compulsory_bytes", "issued_bytes", "line_bytes"), _NUMBER),  # of a pass
    "footprint": _NUMBER,  # bytes of lines, of all layers
    **dict.fromkeys(("max_abs_err", "huge", "skew", "disturbed"), _NUMBER),  # huge, disturbed: shares
    "error": _TEXT,
}


def within(*columns: str) -> dict[str, str]:
    """The columns of what only some words of these have, each with the one that it depends on."""
    return {name: field.within for name, field in BY_COLUMN.items() if field.within in columns}


def facts(point: Point | Probe) -> dict[str, Any]:
    """By the names above."""
    found = _own(point) | {"name": point.name, "kernel": point.kernel}
    found |= {"threads": len(point.cpus), "cpus": cpu_text(point.cpus)}
    if isinstance(point, Probe):
        return found
    shape = _own(point.shape)
    return found | {"layers_asked": shape.pop("layers"), "group": point.shape.group} | shape


def _own(value: Point | Probe | Shape) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def table(rows: Iterable[dict[str, Any] | tuple[Any, ...]], columns: dict[str, str]) -> pd.DataFrame:
    """Rows as dictionaries, or in the order of the columns."""
    frame = pd.DataFrame(list(rows), columns=list(columns))
    texts = [name for name, kind in columns.items() if kind == _TEXT]
    frame[texts] = frame[texts].astype(object).fillna("")
    return frame.astype(columns)
