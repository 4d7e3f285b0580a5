"""A run in five answers: what decodes fastest, what memory and L3 give, whether L3 helps, what
limits; and how far to trust it.

The workload is that of `kvbench score` where the run has it: Llama 3 8B, 4,096 tokens, from memory,
most threads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import pandas as pd

from kvbench.analysis.limits.claims import NOT_TESTABLE, PRIVATE
from kvbench.analysis.limits.frames import decodes_of, known, noise
from kvbench.analysis.measured.columns import machine_name
from kvbench.machine.virtual import is_virtual
from kvbench.model import PLAIN, Ceiling, Machine
from kvbench.model.annotated import about

MODEL, CONTEXT = "llama-3-8b", 4096
GOOD, FAIR, POOR = "good", "fair", "poor"
_SPREADS = {GOOD: 0.1, FAIR: 0.3}  # of the typical point, at most
_UNSTABLE = {GOOD: 0.02, FAIR: 0.15}  # of the points, at most
FEWEST = 5  # launches of a run that is better than poor


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A figure and its interval over launches."""

    value: Annotated[float, about("in `unit`: median over launches")]
    low: Annotated[float, about("in `unit`: lower end of its interval")]
    high: Annotated[float, about("in `unit`: upper end of its interval")]
    unit: Annotated[str, about("GB/s, tokens/s or times")]

    @classmethod
    def of(cls, row: Mapping[str, Any], name: str, unit: str) -> Self:
        """From the row of a table."""
        return cls(float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]), unit)


@dataclass(frozen=True, slots=True)
class Bar:
    """The fastest layout and variant of a dtype."""

    name: Annotated[str, about("of the point")]
    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("of the cache")]
    variant: Annotated[str, about("the way of doing it")]
    tokens_per_second: Annotated[
        Enclosed, about("tokens per second: were reading the cache all that a step does")
    ]
    gbps: Annotated[float, about("GB/s: compulsory bytes over time")]
    memory_allows: Annotated[
        float | None, about("tokens per second: plain reads of as many bytes; null if unknown")
    ]
    max_abs_err: Annotated[float | None, about("absolute: largest error of an output")]
    bound: Annotated[str, about("what limits it: memory, core, scheduling or unknown")]
    level: Annotated[bool, about("whether its interval reaches that of the fastest")]


@dataclass(frozen=True, slots=True)
class Helped:
    """What a decode from L3 gains over the same from memory, or over plain reads of memory where
    `over` is read.
    """

    name: Annotated[str, about("of the point")]
    dtype: Annotated[str, about("number format of the cache")]
    group: Annotated[int, about("query heads on a KV head")]
    times: Annotated[Enclosed, about("how many times as fast")]
    over: Annotated[str, about("decode or read: what it is held against")]
    verdict: Annotated[str, about("confirmed, refuted, core-bound, unstable or not testable")]


@dataclass(frozen=True, slots=True)
class Quality:
    grade: Annotated[str, about("good, fair or poor")]
    launches: Annotated[int, about("of the run")]
    points: Annotated[int, about("points")]
    failed: Annotated[int, about("points that lack a launch or more")]
    suspect: Annotated[int, about("points above a ceiling, without an explanation")]
    unstable: Annotated[int, about("points whose launches lie far apart")]
    spread: Annotated[
        float | None, about("share of the median: interval over launches, of the typical point")
    ]


@dataclass(frozen=True, slots=True)
class Headline:
    machine: Annotated[str, about("its name")]
    virtual: Annotated[bool, about("whether it is a virtual machine")]
    isa: Annotated[str, about("instruction set of the fastest decode")]
    threads: Annotated[int, about("of the workload")]
    model: Annotated[str, about("whose layers are decoded; empty if those of no known model")]
    context: Annotated[int, about("tokens that every sequence holds")]
    bars: Annotated[tuple[Bar, ...], about("by dtype, fastest first")]
    memory: Annotated[Enclosed | None, about("plain reads of memory by that many threads")]
    l3: Annotated[Enclosed | None, about("plain reads from L3 by that many threads")]
    l3_reads: Annotated[
        Enclosed | None, about("how many times as fast L3 is read as memory, side by side")
    ]
    helped: Annotated[
        tuple[Helped, ...], about("decodes from L3, by dtype and group, most helped first")
    ]
    no_l3: Annotated[str, about("why L3 was not tested; else empty")]
    quality: Annotated[Quality, about("how far to trust the run")]


def headline(
    points: pd.DataFrame,
    tokens: pd.DataFrame,
    ceilings: Sequence[Ceiling],
    machine: Machine,
    launches: int,
) -> Headline:
    """From the tables of these names."""
    workload, rows = _workload(tokens)
    own = points.set_index("name", drop=False)
    bars = tuple(_bars(rows, own)) if len(rows) else ()
    threads = (
        int(rows["threads"].iloc[0])
        if len(rows)
        else int(points["threads"].max())
        if len(points)
        else 0
    )
    inside, hypervisor = inside_l3(points), machine.facts.get("hypervisor")
    tested = inside[inside["l3"] != NOT_TESTABLE]
    most = tested[tested["threads"] == tested["threads"].max()]
    return Headline(
        machine=machine_name(machine),
        virtual=hypervisor is not None and is_virtual(hypervisor),
        isa=str(own.loc[bars[0].name, "isa"]) if bars else "",
        threads=threads,
        model=workload[0],
        context=workload[1],
        bars=bars,
        memory=_plain(ceilings, "DRAM", threads),
        l3=_plain(ceilings, "L3", threads),
        l3_reads=Enclosed.of(middle(most), "l3_reads", "times") if len(most) else None,
        helped=_helped(most),
        no_l3=(
            ""
            if len(tested)
            else next(filter(None, inside["l3_reason"]), "no decode of this run lies in L3")
        ),
        quality=_quality(points, launches),
    )


def _workload(tokens: pd.DataFrame) -> tuple[tuple[str, int], pd.DataFrame]:
    """The rows of the workload, or of what is most like it: the model with most rows, the context
    nearest to 4,096.
    """
    rows = tokens[tokens["tokens_per_second"].notna()]
    if rows.empty:
        return ("", 0), rows
    models = rows["model"].str.split(", ")
    named = models.map(lambda names: MODEL in names)
    model = MODEL if named.any() else models.value_counts().index[0][0]
    rows = rows[models.map(lambda names: model in names)]
    rows = rows[rows["batch"] == rows["batch"].min()]
    rows = rows[rows["threads"] == rows["threads"].max()]
    distance = (rows["context"] - CONTEXT).abs()
    rows = rows[distance == distance.min()]
    return (model, int(rows["context"].iloc[0])), rows


def _bars(rows: pd.DataFrame, points: pd.DataFrame) -> Iterator[Bar]:
    fastest = rows.loc[rows.groupby("dtype")["tokens_per_second"].idxmax()]
    fastest = fastest.sort_values("tokens_per_second", ascending=False).to_dict("records")
    for row in fastest:
        rate, point = Enclosed.of(row, "tokens_per_second", "tokens/s"), points.loc[row["name"]]
        yield Bar(
            **{name: row[name] for name in ("name", "dtype", "layout", "variant")},
            tokens_per_second=rate,
            gbps=float(point["gbps"]),
            memory_allows=known(rate.value * point["dram_gbps"] / point["gbps"]),
            max_abs_err=known(point["max_abs_err"]),
            bound=str(point["bound"]),
            level=bool(rate.high >= fastest[0]["tokens_per_second_low"]),
        )


def _plain(ceilings: Sequence[Ceiling], level: str, threads: int) -> Enclosed | None:
    """The fastest plain read of this level by so many threads."""
    own = [
        each
        for each in ceilings
        if (each.probe.op, each.form, each.level) == ("read", PLAIN, level)
    ]
    own = [each for each in own if each.probe.threads == threads]
    best = max(own, key=lambda each: each.median, default=None)
    return Enclosed(best.median, best.low, best.high, "GB/s") if best else None


def inside_l3(points: pd.DataFrame) -> pd.DataFrame:
    """Decodes that L3 serves, whatever their verdict."""
    decodes = decodes_of(points)
    return decodes[(decodes["regime"] == "L3") & ~decodes["l3"].isin(["", PRIVATE])]


def gain_of(tested: pd.DataFrame) -> str:
    """The column that tells what a decode gains from L3: over the same from memory where that was
    timed, else over reads.
    """
    return "l3_gain" if tested["l3_gain"].notna().all() else "l3_decode"


def middle(points: pd.DataFrame) -> pd.Series:
    """The point whose reads gain as much from L3 as those of the middle one."""
    return points.sort_values("l3_reads").iloc[(len(points) - 1) // 2]


def _helped(tested: pd.DataFrame) -> tuple[Helped, ...]:
    """Of each dtype and group the point that gains most."""
    if tested.empty:
        return ()
    column = gain_of(tested)
    over = "decode" if column == "l3_gain" else "read"
    best = tested.loc[tested.groupby(["dtype", "group"])[column].idxmax()].sort_values(
        column, ascending=False
    )
    return tuple(
        Helped(
            row["name"],
            row["dtype"],
            int(row["group"]),
            Enclosed.of(row, column, "times"),
            over,
            row["l3"],
        )
        for _, row in best.iterrows()
    )


def _quality(points: pd.DataFrame, launches: int) -> Quality:
    several = points[points["launches"] > 1]
    unstable, spread = int(several["unstable"].fillna(False).astype(bool).sum()), noise(points).gbps
    failed = int((points["error"] != "").sum())
    suspect = int(points["suspect"].fillna(False).sum())
    share, grade = unstable / max(len(several), 1), POOR
    if spread is not None and launches >= FEWEST and not failed:
        grades = (FAIR,) if suspect else (GOOD, FAIR)
        grade = next(
            (each for each in grades if spread <= _SPREADS[each] and share <= _UNSTABLE[each]), POOR
        )
    return Quality(grade, launches, len(points), failed, suspect, unstable, spread)
