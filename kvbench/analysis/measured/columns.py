"""The columns of the tables, a point's facts as columns, and its short names."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, make_dataclass
from functools import partial
from typing import Annotated, Any, Self

import pandas as pd

from kvbench.model import FIELDS, Machine, Point
from kvbench.model.annotated import about
from kvbench.model.field import Field
from kvbench.model.point import Visited
from kvbench.model.shape import lengths_word
from kvbench.units import counted, cpu_text, size

# a value that does not apply is "", <NA> or NaN
_TEXT, _COUNT, _NUMBER, _FLAG = "str", "Int64", "float64", "boolean"
_ENDS = {"low": "lower", "high": "upper"}
_AS_JSON = {_TEXT: str, _COUNT: int | None, _NUMBER: float | None, _FLAG: bool | None}


class ColumnKind(str):
    """The dtype of a column, and the meaning of its values with their unit."""

    about: str

    def __new__(cls, dtype: str, about: str) -> Self:
        found = super().__new__(cls, dtype)
        found.about = about
        return found


text, count, number, flag = (partial(ColumnKind, kind) for kind in (_TEXT, _COUNT, _NUMBER, _FLAG))


def ends(name: str, unit: str) -> dict[str, ColumnKind]:
    """The columns of the interval of another column."""
    return {
        f"{name}_{end}": number(f"{unit}: {which} end of its interval")
        for end, which in _ENDS.items()
    }


def band(name: str, about: str) -> dict[str, ColumnKind]:
    """A column and the columns of its interval. The unit is the text before the colon."""
    return {name: number(about)} | ends(name, about.partition(":")[0])


def row(title: str, columns: Mapping[str, ColumnKind]) -> type:
    """The type of a row of a table in JSON."""
    kinds = [
        (name, Annotated[_AS_JSON[str(kind)], about(kind.about)]) for name, kind in columns.items()
    ]
    return make_dataclass(title, kinds, frozen=True, slots=True)


_NOUNS = {"threads": "thread", "queries": "query"}  # the noun that a field counts, by its kind
_SEED = "order"  # an axis of words whose values are seeds in a point
# the dtype of a column by the kind of its field; all others are counts
_KINDS = {
    **dict.fromkeys(("word", "cpus", "memory", "lengths"), _TEXT),
    "flag": "boolean",
    "number": _NUMBER,
}

# All fields of a point. `layers` 0: as many slices as are needed to exceed the caches.
BY_COLUMN = {field.column or field.name: field for field in FIELDS if field.column is not None}
POINT = {
    "name": text("name of the point with all its fields; runs are joined by it"),
    "kernel": text("op.variant.layout.dtype.isa"),
    **{
        name: ColumnKind(_COUNT if name == _SEED else _KINDS.get(field.kind, _COUNT), field.meaning)
        for name, field in BY_COLUMN.items()
    },
}

# The columns that points and probes share, or are grouped by. `bytes`: footprint of a probe.
EITHER: dict[str, str] = {
    name: POINT[name]
    for name in (
        *("name", "kernel", "op", "layout", "dtype", "isa"),
        *("batch", "group", "context", "window", "threads", "cpus", "pages"),
    )
} | {"residency": _TEXT, "bytes": _COUNT}

SAMPLE = {
    "program": _TEXT,
    **dict.fromkeys(("launch", "part", "round", "passes"), _COUNT),
    **dict.fromkeys(("seconds", "seconds_per_pass", "gbps", "gflops", "skew"), _NUMBER),
    **dict.fromkeys(("switches", "faults"), _COUNT),
    "steal": _NUMBER,
    "throttled": _COUNT,
    "core_speed": _NUMBER,  # of the visit, as a share of the run's best on these cores
    "disturbed": "boolean",
}

# What was found about a point. Rates are compulsory bytes over time. low and high are the interval
# of the column they are named after.
FOUND = {
    "beside": flag("whether it was timed beside the fastest kernels of other dtypes"),
    "ran": text("schedule that ran; empty if there is none"),
    "launches": count("launches with numbers"),
    "samples": count("samples of the point itself"),
    "failed": count("launches without a number"),
    "uneven": count(
        "launches without a share, because samples of the point and of a witness differ too"
        " much in length"
    ),
    **band("seconds", "seconds: one pass, median of the launches"),
    "spread": number("share of the median: width of the interval of seconds"),
    "confidence": number("probability: that low and high enclose the true median"),
    "unstable": flag("whether the middle half of the launches is too wide"),
    "outliers": count("launches that lie far from the others"),
    **band("pass_p50", "seconds: half of the passes took no longer, timed one by one"),
    **band("pass_p99", "seconds: 99 % of the passes took no longer"),
    "pass_note": text("why pass_p50 or pass_p99 is missing, or a remark on it; else empty"),
    **band("neighbour_p50", "seconds: as pass_p50, while other cores of its nodes streamed memory"),
    **band("neighbour_p99", "seconds: as pass_p99, while other cores of its nodes streamed memory"),
    **band(
        "neighbour_times",
        "ratio: time of a pass meanwhile over that of a pass alone, in the same rounds",
    ),
    "neighbour_gbps": number("GB/s: that these other cores read meanwhile"),
    **band("gbps", "GB/s: compulsory bytes over time, median of the launches"),
    "witness": text("the program that efficiency is a share of"),
    "efficiency": number(
        "share of the point's time that its witness takes for as many bytes, round by round; the"
        " witness of a step is a plain read of memory, that of a store a copy"
    ),
    **ends("efficiency", "share of the witness"),
    "efficiency_spread": number("share of the median: width of the interval of efficiency"),
    "twin_gbps": number("GB/s: the same reads without the decode"),
    "copy_gbps": number("GB/s: for a store, a copy of as many bytes"),
    "copy_fraction": number("share of copy_gbps"),
    **band(
        "memory_share",
        "share of plain reads of memory: GB/s over theirs, in the same rounds; for data in memory",
    ),
    "core_gbps": number(
        "GB/s: core speed: the same kernel in a private cache; raised if a point of that"
        " kernel is surely faster"
    ),
    **band("core_fraction", "share of its core speed, in the same rounds"),
    "core_level": text("the cache of core_gbps; empty if unknown"),
    "core_speed": number(
        "share of the run's best on these cores: speed of the cores, median of the launches"
    ),
    "slow": count("visits in which the cores ran below 80 % of their best speed"),
    "slow_speed": number(
        "share of the run's best on these cores: their speed in the slow visits, median"
    ),
    "set_aside": count(
        "slow visits that are left out of all numbers, because enough others remain"
    ),
    "ceiling_op": text("op of the probe of the ceiling"),
    "ceiling_form": text(
        "the fastest form of its reads or copies: plain, ahead (prefetching), or a schedule"
    ),
    "ceiling_threads": count("threads of the fastest probe: those of the point, or fewer"),
    "ceiling_gbps": number("GB/s: that the probe reached at this footprint, on these pages"),
    **ends("ceiling", "GB/s"),
    "ceiling_fraction": number("share of ceiling_gbps"),
    "ceiling_note": text("why the ceiling is missing, as a word; else empty"),
    "above": text("the roof that the point exceeds; else empty"),
    "above_reason": text("the cause of the excess, as a word"),
    "above_also": text("other roofs that it exceeds"),
    "suspect": flag("whether it exceeds a roof without explanation: answers leave it out"),
    "dram_gbps": number("GB/s: plain reads from memory by the same threads"),
    **ends("dram", "GB/s"),
    "fma_gflops": number("GFLOP/s: peak of the kernel's own products by the same threads"),
    "gflops": number("GFLOP/s: of the point"),
    "ai": number("FLOP per byte: arithmetic intensity over compulsory bytes"),
    "ai_issued": number("FLOP per byte: arithmetic intensity over issued bytes"),
    "regime": text("level that feeds the point: L1, L2, L3, DRAM, mixed or unknown"),
    "regime_reason": text("the reason for the regime, as a word"),
    "regime_bytes": number("bytes: compared with regime_limit, of one thread or of all"),
    "regime_limit": number("bytes: the limit that the reason is about; 0 if no size decides"),
    "regime_confidence": text("high, low or none"),
    "bound": text(
        "what limits a decode or a step: memory, rows (reads of its own rows), core, both, neither,"
        " not clear or unknown"
    ),
    "bound_reason": text("the reason for bound, as a word"),
    "bound_by": text("the limits that the reason is about: memory, rows or core"),
    "l3": text(
        "verdict on the claim that a slice in L3 is read faster than memory: confirmed,"
        " refuted, ...; empty if the point does not test it"
    ),
    "l3_reason": text("the reason for l3, as a word"),
    "l3_allowed": number(
        "ratio: rate that its core speed allows over plain reads of memory, in the same rounds"
    ),
    "l3_needs": count(
        "launches: about how many decide it; empty if it is decided, or if more decide nothing"
    ),
    **band(
        "l3_reads",
        "ratio: plain reads of the slice over those of memory, by the same threads in the same"
        " rounds",
    ),
    **band(
        "l3_decode",
        "ratio: GB/s of the point over those of plain reads of memory, in the same rounds",
    ),
    **band(
        "l3_gain", "ratio: time of the same decode from memory over its own, in the same rounds"
    ),
    "slices": count("slices in rotation"),
    "slice_bytes": count("bytes: one slice"),
    "bytes_compulsory": number("bytes: compulsory, in a pass"),
    "kv_bytes": number("bytes: keys, values, scales and page tables in a pass"),
    "bytes_issued": number("bytes: loaded by the cores in a pass"),
    "bytes_line": number("bytes: cache lines touched in a pass"),
    "footprint": number("bytes: cache lines touched in all slices"),
    "max_abs_err": number("absolute: largest difference of an output element to float64"),
    "huge": number("share of the memory that really is on huge pages"),
    "skew": number("share of the mean by which the slowest thread worked longer"),
    "disturbed": number("share of the samples during which other work ran"),
    "error": text("error of the first launch that failed; else empty"),
}


def within(*columns: str) -> dict[str, str]:
    """The columns that apply only for some words of these columns, each with the column that it
    depends on.
    """
    return {name: field.within for name, field in BY_COLUMN.items() if field.within in columns}


def facts(point: Visited) -> dict[str, Any]:
    """The facts of a point or a probe, by column."""
    found = {
        **_own(point),
        "name": point.name,
        "kernel": point.kernel,
        "threads": point.threads,
        "cpus": cpu_text(point.cpus),
    }
    if not isinstance(point, Point):
        return found
    shape = _own(point.shape) | {"lengths": lengths_word(point.shape.lengths)}
    return found | {"dtype": point.kv_dtype, "group": point.shape.group} | shape


def _own(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def table(
    rows: Iterable[dict[str, Any] | tuple[Any, ...]], columns: Mapping[str, str]
) -> pd.DataFrame:
    """A table from rows, which are dictionaries or tuples in the order of the columns."""
    frame = pd.DataFrame(list(rows), columns=list(columns))
    texts = [name for name, kind in columns.items() if kind == _TEXT]
    frame[texts] = frame[texts].astype(object).fillna("")
    return frame.astype(dict(columns))


# ---- short names: the fields that vary in a run, and unusual fields of shapes --------------------

_WORDS = {column: field for column, field in BY_COLUMN.items() if field.short}
_ALWAYS = ("layout", "dtype")  # so that no name is empty
_MOST = 0.5  # if more of an op's points share a value, short names omit it (`usual` fields)


def machine_name(machine: Machine, fingerprint: str = "") -> str:
    fact = machine.facts.get("brand")
    name = str(fact.value) if fact and fact.value else "a machine without a name"
    return f"{name} (fingerprint {fingerprint})" if fingerprint else name


def names(points: Iterable[Point]) -> dict[str, str]:
    """Short names of points, by their full names."""
    found = table(map(facts, points), POINT)
    return dict(zip(found["name"], short_names(found), strict=True)) if len(found) else {}


def short_names(points: pd.DataFrame) -> list[str]:
    """A short name for each row of the points' table. All are different."""
    shown = {name: _varies(points, name) for name in _WORDS}
    facts = (
        points[list(_WORDS)]
        .astype(object)
        .where(points[list(_WORDS)].notna(), None)
        .to_dict("records")
    )
    found = []
    for place, row in enumerate(facts):
        words = []
        for name, field in _WORDS.items():
            value = row[name]
            # the value does not apply, or is an empty default
            none = value in (None, "", "-") or not value and value == field.default
            full = name == "capacity" and value == row["context"]
            # a fixed word stands for every value but the default
            none |= "{" not in field.short and value == field.default
            if shown[name][place] and not none and not full:
                words.append(_said(field, value))
        found.append(" ".join(words) or row["op"])
    return found


def _said(field: Field, value: Any) -> str:
    if noun := _NOUNS.get(field.kind):
        return counted(value, noun)
    return field.short.format(size(value) if field.kind == "between" else value)


def names_without(points: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """As short_names, but without these columns: points that differ only in them share a name."""
    if points.empty:
        return []
    return short_names(points.assign(**{name: points[name].iloc[0] for name in columns}))


def _varies(points: pd.DataFrame, name: str) -> list[bool]:
    """For each row, whether comparable rows differ in this column."""
    if name in _ALWAYS:
        return [True] * len(points)
    if name == "op":
        return [points["op"].nunique() > 1] * len(points)
    field = _WORDS[name]
    values = points.groupby(list(dict.fromkeys(("op", field.within or "op"))))[name]
    varies = values.transform("nunique", dropna=False) > 1
    if field.usual:
        most = values.transform(lambda own: own.map(own.value_counts(normalize=True)) > _MOST)
        varies &= ~most.astype(bool)
    return list(varies)
