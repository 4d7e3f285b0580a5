"""The columns of the tables, what they hold of a point as it was asked for, and its name for
people.
"""

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

# what does not apply is "", <NA>, NaN
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
    """Columns of the interval of another."""
    return {
        f"{name}_{end}": number(f"{unit}: {which} end of its interval")
        for end, which in _ENDS.items()
    }


def band(name: str, about: str) -> dict[str, ColumnKind]:
    """A column and its interval, in the unit that stands before the colon."""
    return {name: number(about)} | ends(name, about.partition(":")[0])


def row(title: str, columns: Mapping[str, ColumnKind]) -> type:
    """A row of a table as JSON has it."""
    kinds = [
        (name, Annotated[_AS_JSON[str(kind)], about(kind.about)]) for name, kind in columns.items()
    ]
    return make_dataclass(title, kinds, frozen=True, slots=True)


_NOUNS = {"threads": "thread", "queries": "query"}  # by kind of a field, what it counts
_SEED = "order"  # an axis of words, for one of which a point has a seed
# of a field; all others count
_KINDS = {
    **dict.fromkeys(("word", "cpus", "memory", "lengths"), _TEXT),
    "flag": "boolean",
    "number": _NUMBER,
}

# A point, in full. `layers` 0: as many slices as it takes to leave the caches behind.
BY_COLUMN = {field.column or field.name: field for field in FIELDS if field.column is not None}
POINT = {
    "name": text("all that it is, in one word: what runs are joined by"),
    "kernel": text("op.variant.layout.dtype.isa"),
    **{
        name: ColumnKind(_COUNT if name == _SEED else _KINDS.get(field.kind, _COUNT), field.meaning)
        for name, field in BY_COLUMN.items()
    },
}

# What points and probes have in common, or are grouped by. `bytes` are a probe's footprint.
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

# What was found out about a point. Rates are compulsory bytes over time; low and high enclose what
# they are named for.
FOUND = {
    "beside": flag("whether it was timed beside the fastest kernels of other dtypes"),
    "ran": text("schedule that ran; empty where none does"),
    "launches": count("with numbers"),
    "samples": count("of the point itself"),
    "failed": count("launches without a number"),
    "uneven": count(
        "launches whose samples, of the point and a witness, are too unlike in length to be divided"
    ),
    **band("seconds", "seconds: of a pass, median of the launches"),
    "spread": number("share of the median: width of the interval of seconds"),
    "confidence": number("probability: with which low and high enclose the true median"),
    "unstable": flag("whether the middle half of the launches is too wide"),
    "outliers": count("launches that lie far out"),
    **band("pass_p50", "seconds: half of the passes took no longer; they were timed one by one"),
    **band("pass_p99", "seconds: 99 % of the passes took no longer"),
    "pass_note": text("why there is no pass_p50 or no pass_p99, or what it is of; else empty"),
    **band("neighbour_p50", "seconds: as pass_p50, while other cores of its nodes streamed memory"),
    **band("neighbour_p99", "seconds: as pass_p99, while other cores of its nodes streamed memory"),
    **band(
        "neighbour_times",
        "ratio: time of a pass meanwhile over that of one alone, in the same rounds",
    ),
    "neighbour_gbps": number("GB/s: what these other cores read meanwhile"),
    **band("gbps", "GB/s: compulsory bytes over time, median of the launches"),
    "witness": text("the program that efficiency is a share of"),
    "efficiency": number(
        "share of the point's time that its witness takes, round by round; a copy, or of a step a"
        " plain read of memory, for as many bytes"
    ),
    **ends("efficiency", "share of the witness"),
    "efficiency_spread": number("share of the median: width of the interval of efficiency"),
    "twin_gbps": number("GB/s: the same reads and nothing else"),
    "copy_gbps": number("GB/s: of a store, as many bytes copied"),
    "copy_fraction": number("share of copy_gbps"),
    **band(
        "memory_share",
        "share of plain reads of memory: GB/s over theirs, in the same rounds; of data in memory",
    ),
    "core_gbps": number(
        "GB/s: the same kernel in a private cache; its core speed. Where a point of the kernel"
        " surely beats that, by as much more"
    ),
    **band("core_fraction", "share of its core speed, in the same rounds"),
    "core_level": text("the cache that its data stays in; empty where it is not known"),
    "core_speed": number(
        "share of the run's best on these cores: their speed, median of the launches"
    ),
    "slow": count("visits in which the cores were at less than 80 % of their speed"),
    "slow_speed": number(
        "share of the run's best on these cores: their speed in those visits, median"
    ),
    "set_aside": count(
        "visits of those that are left out of all numbers, for enough others are left"
    ),
    "ceiling_op": text("the probe that the ceiling is of"),
    "ceiling_form": text(
        "how it reads or copies: plain, ahead (prefetching), or as a schedule does; the best of all"
    ),
    "ceiling_threads": count("of the best: those of the point, or fewer"),
    "ceiling_gbps": number("GB/s: what it reached at this footprint, on these pages"),
    **ends("ceiling", "GB/s"),
    "ceiling_fraction": number("share of ceiling_gbps"),
    "ceiling_note": text("why there is none, as a word; else empty"),
    "above": text("the roof that the point exceeds; else empty"),
    "above_reason": text("why that can be, as a word"),
    "above_also": text("other roofs that it exceeds"),
    "suspect": flag("whether it exceeds a roof and nothing explains that: answers leave it out"),
    "dram_gbps": number("GB/s: of plain reads from memory by the same threads"),
    **ends("dram", "GB/s"),
    "fma_gflops": number("GFLOP/s: peak of the kernel's own products by the same threads"),
    "gflops": number("GFLOP/s: of the point"),
    "ai": number("FLOP per byte: over compulsory bytes"),
    "ai_issued": number("FLOP per byte: over issued bytes"),
    "regime": text("what feeds the point: L1, L2, L3, DRAM, mixed or unknown"),
    "regime_reason": text("why, as a word"),
    "regime_bytes": number("bytes: that are held against regime_limit, of a thread or of all"),
    "regime_limit": number("bytes: that the reason is about; 0 where no size tells"),
    "regime_confidence": text("high, low or none"),
    "bound": text(
        "what limits a decode or a step: memory, rows (reads of its own rows), core, both, neither,"
        " not clear or unknown"
    ),
    "bound_reason": text("why, as a word"),
    "bound_by": text("what the reason is about, of memory, rows and core"),
    "l3": text(
        "whether a slice in L3 is read faster than memory: confirmed, refuted, ...; empty: it says"
        " nothing"
    ),
    "l3_reason": text("why, as a word"),
    "l3_allowed": number(
        "ratio: what its core speed allows over plain reads of memory, in the same rounds"
    ),
    "l3_needs": count(
        "launches: about as many as decide it; none where it is decided, or more decide nothing"
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
    "slices": count("in rotation"),
    "slice_bytes": count("bytes: of one slice"),
    "bytes_compulsory": number("bytes: of a pass"),
    "kv_bytes": number("bytes: of keys, values, scales and page tables in a pass"),
    "bytes_issued": number("bytes: of a pass"),
    "bytes_line": number("bytes: of the lines touched in a pass"),
    "footprint": number("bytes: of lines, of all slices"),
    "max_abs_err": number("absolute: largest difference of an output element to float64"),
    "huge": number("share of the memory that really is on huge pages"),
    "skew": number("share of the mean, by which the slowest thread worked longer"),
    "disturbed": number("share of the samples that met other work"),
    "error": text("of the first launch that failed; else empty"),
}


def within(*columns: str) -> dict[str, str]:
    """The columns of what only some words of these have, each with the one that it depends on."""
    return {name: field.within for name, field in BY_COLUMN.items() if field.within in columns}


def facts(point: Visited) -> dict[str, Any]:
    """By the names above."""
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
    """Rows as dictionaries, or in the order of the columns."""
    frame = pd.DataFrame(list(rows), columns=list(columns))
    texts = [name for name, kind in columns.items() if kind == _TEXT]
    frame[texts] = frame[texts].astype(object).fillna("")
    return frame.astype(dict(columns))


# ---- names: what varies between points of a run, and of shapes what is not the usual one ---------

_WORDS = {column: field for column, field in BY_COLUMN.items() if field.short}
_ALWAYS = ("layout", "dtype")  # so that no name is empty
_MOST = 0.5  # of the points of an op: what they have is not said of a usual field


def machine_name(machine: Machine, fingerprint: str = "") -> str:
    fact = machine.facts.get("brand")
    name = str(fact.value) if fact and fact.value else "a machine without a name"
    return f"{name} (fingerprint {fingerprint})" if fingerprint else name


def names(points: Iterable[Point]) -> dict[str, str]:
    """Short ones, by the points' own."""
    found = table(map(facts, points), POINT)
    return dict(zip(found["name"], short_names(found), strict=True)) if len(found) else {}


def short_names(points: pd.DataFrame) -> list[str]:
    """One for each row of the points' table, no two the same."""
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
            # and is the usual
            none = value in (None, "", "-") or not value and value == field.default
            full = name == "capacity" and value == row["context"]
            # a word of its own says what is not the usual
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
    """As short_names, but silent about these columns: points that differ in nothing else have one
    name.
    """
    if points.empty:
        return []
    return short_names(points.assign(**{name: points[name].iloc[0] for name in columns}))


def _varies(points: pd.DataFrame, name: str) -> list[bool]:
    """Whether each row has others beside it that differ in this."""
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
