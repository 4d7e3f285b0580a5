"""What fits, what binds, and what follows for published models."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.limits.bounds import CLOSE
from kvbench.analysis.means.diagnosis.values import Interval
from kvbench.analysis.measured.launches import enough

# ---- what fits -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """Models of which one layer's keys and values fit L3 up to a context; `whole`: up to their longest."""

    context: int
    whole: bool
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """`words`: models by what is known of decodes there, a word of analysis.bounds or models.NOT_TESTED. `closed`: why
    there is no reach."""

    dtype: str
    threads: int
    reaches: tuple[Reach, ...] = ()
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    closed: str = ""


def fit(fits: pd.DataFrame) -> Fit | None:
    """For the dtype with most rows, and the largest number of threads."""
    if fits.empty:
        return None
    own = fits[fits["dtype"] == fits["dtype"].value_counts().index[0]]
    own = own[own["threads"] == own["threads"].max()].drop_duplicates("model")
    setting = str(own["dtype"].iloc[0]), int(own["threads"].iloc[0])
    open_ = own[own["l3_high_context"].notna()]
    if open_.empty:
        return Fit(*setting, closed=own["reason"].iloc[0].removeprefix("not testable: "))
    whole = open_["l3_high_context"] >= open_["max_context"]
    groups = open_.groupby(["l3_high_context", whole])["model"]
    reaches = tuple(Reach(int(context), bool(all_), tuple(names)) for (context, all_), names in groups)[::-1]
    words = tuple((str(word), tuple(names)) for word, names in open_.groupby("l3")["model"])
    return Fit(*setting, reaches, words)


# ---- what binds ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """From so many query heads on a KV head on. `word`: what most of the points are bound by; the medians of their shares
    of the read of the same rows and of the core roof."""

    group: int
    word: str
    read: float
    core: float


@dataclass(frozen=True, slots=True)
class DtypeBound:
    """`beaten`: points, of all `points`, that are faster than a roof, by which nothing is decided."""

    dtype: str
    stretches: tuple[Stretch, ...]
    beaten: int
    points: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of decodes from memory by most threads."""

    threads: int
    dtypes: tuple[DtypeBound, ...]


def bounds(points: pd.DataFrame) -> Bounds | None:
    far = points[(points["op"] == "decode") & (points["regime"] == "DRAM") & (points["bound"] != "")]
    far = far[far["threads"] == far["threads"].max()]
    far = far[far["efficiency"].notna() & far["core_fraction"].notna()]
    if far.empty:
        return None
    found = []
    for dtype, rows in far.groupby("dtype"):
        beaten = (rows["bound"] == "unknown") & (rows[["efficiency", "core_fraction"]].max(axis=1) >= CLOSE)
        found.append(DtypeBound(str(dtype), tuple(_stretches(rows[~beaten])), int(beaten.sum()), len(rows)))
    return Bounds(int(far["threads"].iloc[0]), tuple(found))


def _stretches(rows: pd.DataFrame) -> Iterator[Stretch]:
    words = rows.groupby("group")["bound"].agg(lambda own: own.value_counts().index[0])
    for _, own in rows.groupby(rows["group"].map((words != words.shift()).cumsum())):
        group = int(own["group"].min())
        yield Stretch(group, words[group], float(own["efficiency"].median()), float(own["core_fraction"].median()))


# ---- what follows ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelTokens:
    """`rates`: tokens per second by context. `remark`: what to know about the longest."""

    models: tuple[str, ...]
    rates: tuple[tuple[int, float], ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What reading the cache alone allows, in the fastest of what was measured, of the smallest batch."""

    shapes: tuple[ModelTokens, ...]


def tokens(tokens: pd.DataFrame) -> Tokens | None:
    """At the shortest and the longest context."""
    known = tokens[tokens["tokens_per_second"].notna()]
    known = known[known["batch"] == known["batch"].min()]
    each = known.assign(model=known["model"].str.split(", ")).explode("model")
    found: dict[tuple[tuple[tuple[int, float], ...], str], list[str]] = {}
    for model, rows in each.groupby("model"):
        best = rows.groupby("context")["tokens_per_second"].max()
        ends = dict.fromkeys((best.index.min(), best.index.max()))
        remark = str(rows["note"][rows["context"].idxmax()])
        found.setdefault((tuple((int(end), float(best[end])) for end in ends), remark), []).append(str(model))
    return Tokens(tuple(ModelTokens(tuple(names), *said) for said, names in found.items())) if found else None


@dataclass(frozen=True, slots=True)
class PassCost:
    """Of one layer. `fixed`: seconds beside its tokens. `misfit`: share of a measured time by which it is off the line, at
    most. `launches`: whether they are `enough` to tell a fixed cost from none."""

    layout: str
    dtype: str
    threads: int
    fixed: Interval
    gbps: Interval
    misfit: float
    launches: int
    enough: bool


def overhead(scaling: pd.DataFrame) -> PassCost | None:
    """By the series with most contexts, then most threads, then the highest rate."""
    known = scaling[scaling["gbps"].notna()]
    if known.empty:
        return None
    row = known.sort_values(["contexts", "threads", "gbps"]).iloc[-1]
    numbers = Interval.of(row, "fixed_seconds"), Interval.of(row, "gbps"), float(row["misfit"]), int(row["launches"])
    return PassCost(row["layout"], row["dtype"], int(row["threads"]), *numbers, enough(numbers[-1]))
