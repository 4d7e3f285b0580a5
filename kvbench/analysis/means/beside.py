"""Summarize the table of peers: the fastest peer of each cell beside our fastest kernel, all cells
together, two builds of one engine, and the engines that took part.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd

from kvbench.analysis.judge import SLOWER
from kvbench.analysis.means.peers import LIBRARY, RAN
from kvbench.analysis.means.ratios import Visits, complete, judged, logs, mean
from kvbench.grouping import grouped
from kvbench.model import AGAIN, OURS, Engine, Record
from kvbench.model.annotated import about
from kvbench.peers.builds import AT, engine_of

_TIMES = ("times", "times_low", "times_high")
_WORST = 3  # the least cells that a summary lists
_Logs = Mapping[int, float]  # by launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The time of one engine over that of another, from the same rounds."""

    times: Annotated[
        float | None, about("ratio: time of the one over time of the other; null if unknown")
    ]
    low: Annotated[
        float | None,
        about("ratio: low end of its interval; null if there are too few launches"),
    ]
    high: Annotated[
        float | None,
        about("ratio: high end of its interval; null if there are too few launches"),
    ]
    launches: Annotated[int, about("launches that measured both")]
    word: Annotated[
        str,
        about(
            "the one is faster, slower, same within noise, or not decided; empty if there is no"
            " ratio"
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRatio(Ratio):
    """The ratio in one cell."""

    cell: Annotated[int, about("number of the cell, as in the rows")]
    model: Annotated[str, about("all models of this shape")]
    dtype: Annotated[str, about("number format of the cache")]
    threads: Annotated[int, about("number of threads")]
    context: Annotated[int, about("tokens")]
    q_len: Annotated[int, about("queries of each sequence in a step")]
    attends: Annotated[
        str, about("special features of its attention, in short, as in the rows; empty if none")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRatio(CellRatio):
    """The time of the fastest peer over that of our fastest kernel."""

    best: Annotated[str, about("engine and layout of the fastest peer; empty if none has a rate")]
    best_share: Annotated[
        float | None,
        about(
            "share of the rate of a read of the same rows that this peer reaches; null if unknown"
        ),
    ]
    holds: Annotated[
        bool | None,
        about("whether our lead is as large as `rule` requires; null without an interval"),
    ]
    drift: Annotated[
        float | None,
        about("ratio: our rate after the peers over our rate before them; null if unknown"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(Ratio):
    """All cells: how many times as long as our fastest kernel the fastest peer takes, as a
    geometric mean. Only launches with every cell count.
    """

    cells: Annotated[int, about("cells in which a peer has a rate")]
    drift: Annotated[
        float | None,
        about("share of our rate: the largest difference of our rates before and after the peers"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The lead that this project requires of itself in each cell: the low end of the ratio must be
    at least this.
    """

    near: Annotated[float, about("share of a read: a peer that reaches it is near the limit")] = (
        0.90
    )
    level: Annotated[float, about("ratio: required beside such a peer")] = 0.98
    ahead: Annotated[float, about("ratio: required beside any other peer")] = 1.05
    cells: Annotated[int, about("cells that have an interval")] = 0
    held: Annotated[int, about("cells in which the rule holds")] = 0

    def holds(self, low: float | None, share: float | None) -> bool | None:
        """Whether the rule holds in a cell, from the low end of its ratio and the peer's share of a
        read.
        """
        if low is None:
            return None
        return low >= (self.level if share is not None and share >= self.near else self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCell(CellRatio):
    """The time of a build over that of the engine's first build, in one cell."""

    layout: Annotated[str, about("layout of the cache")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds(Ratio):
    """The time of a build over that of the engine's first build: the geometric mean of all cells.
    Only launches with every cell count.
    """

    engine: Annotated[str, about("engine of both builds")]
    base: Annotated[str, about("label of the first build")]
    head: Annotated[str, about("label of the other build")]
    cells: Annotated[tuple[BuildCell, ...], about("each cell that has both")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TookPart:
    """An engine that was measured beside ours, by its library."""

    engine: Annotated[str, about("name of the engine, as in the rows")]
    version: Annotated[str, about("version of its package; empty if unknown")]
    library: Annotated[str, about("file with its kernels; empty if unknown")]
    sha256: Annotated[str, about("digest of that file; empty if unknown")]
    python: Annotated[str, about("interpreter that ran it; empty for kvbench's own")]
    function: Annotated[tuple[str, ...], about("functions that steps call, by the engine's names")]
    flags: Annotated[
        tuple[str, ...],
        about("arguments of these functions, and CPU features that the engine found, each once"),
    ]

    @property
    def told(self) -> str:
        """The version, with a digest that tells two files of one version apart; empty if neither is
        known.
        """
        known = Engine(self.engine, self.version, self.library, self.sha256, self.python)
        return known.told if self.version or self.sha256 else ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Peers beside ours, in each cell of a run and in all of them. `ranked`: the cells by the low
    end of the interval, our smallest lead first; cells without an interval come last.
    """

    cells: tuple[WorkloadRatio, ...]
    ranked: tuple[WorkloadRatio, ...]
    together: Together
    rule: Rule
    builds: tuple[Builds, ...]
    engines: tuple[TookPart, ...]

    @property
    def listed(self) -> tuple[WorkloadRatio, ...]:
        """The cells that a summary lists: the worst ones, and all others in which a peer is faster
        or level.
        """
        known = [each for each in self.ranked if each.low is not None]
        others = (each for each in known[_WORST:] if each.word != SLOWER)
        return (*known[:_WORST], *others)


def beside(rows: pd.DataFrame, records: Iterable[Record], words: Iterable[str] = ()) -> Beside:
    """Summarize the table of peers. `records`: those behind the table. `words`: engines in the
    order in which they were asked for.
    """
    visits = complete(records)
    cells = [own for _, own in rows.groupby("cell", sort=False)]
    found = tuple(map(_cell, cells))
    held = [each.holds for each in found if each.holds is not None]
    return Beside(
        cells=found,
        ranked=tuple(sorted(found, key=lambda each: math.inf if each.low is None else each.low)),
        together=_together(cells, visits, found),
        rule=Rule(cells=len(held), held=sum(held)),
        builds=tuple(_builds(cells, visits, words)),
        engines=tuple(_engines(rows)),
    )


def _ratio(found: _Logs | None) -> dict[str, Any]:
    """The fields of a Ratio. None: nothing could be compared."""
    unknown = {"times": None, "low": None, "high": None, "launches": 0, "word": ""}
    return unknown if found is None else unknown | judged(found)


# ---- beside ours ---------------------------------------------------------------------------------


def _best(own: pd.DataFrame) -> Any:
    """The row of the fastest peer of a cell; None if no peer has a rate."""
    theirs = own[~own["engine"].isin((OURS, AGAIN)) & own["times"].notna()]
    return theirs.loc[theirs["times"].idxmin()] if len(theirs) else None


def _cell(own: pd.DataFrame) -> WorkloadRatio:
    again, best = own[own["engine"] == AGAIN], _best(own)
    before = own.loc[own["name"].isin(again["name"]) & (own["engine"] == OURS), "gbps"]
    share, times, low, high = (
        None if best is None or pd.isna(best[name]) else float(best[name])
        for name in ("share", *_TIMES)
    )
    return WorkloadRatio(
        **_workload(own),
        best="" if best is None else f"{best['engine']}, {best['layout']}",
        best_share=share,
        times=times,
        low=low,
        high=high,
        launches=0 if best is None else int(best["launches"]),
        word="" if best is None else str(best["word"]),
        holds=Rule().holds(low, share),
        drift=(
            float(again["gbps"].iloc[0] / before.iloc[0]) if len(again) and len(before) else None
        ),
    )


def _workload(own: pd.DataFrame) -> dict[str, Any]:
    first = own.iloc[0]
    return {name: first[name] for name in ("model", "dtype", "attends")} | {
        name: int(first[name]) for name in ("cell", "threads", "context", "q_len")
    }


def _together(
    cells: Sequence[pd.DataFrame], visits: Visits, found: Sequence[WorkloadRatio]
) -> Together:
    series = []
    for own in cells:
        fastest = own.loc[(own["engine"] == OURS) & (own["word"] == ""), "name"]
        if (best := _best(own)) is not None:
            series.append(logs(visits, best["name"], fastest.iloc[0]) if len(fastest) else {})
    drifts = [abs(each.drift - 1) for each in found if each.drift is not None]
    ratio = _ratio(mean(series) if series else None)
    return Together(**ratio, cells=len(series), drift=max(drifts, default=None))


# ---- builds --------------------------------------------------------------------------------------


def _builds(
    cells: Sequence[pd.DataFrame], visits: Visits, words: Iterable[str]
) -> Iterator[Builds]:
    """The comparisons of each further build of an engine with its first build."""
    seen = sorted({word for own in cells for word in own["engine"]})
    order = (word for word in dict.fromkeys((*words, *seen)) if AT in word)
    for engine, (base, *others) in grouped((engine_of(word), word) for word in order).items():
        for head in others:
            if found := list(_pairs(cells, base, head, visits)):
                yield Builds(
                    **_ratio(mean([series for _, series in found if series])),
                    engine=engine,
                    base=_label(base),
                    head=_label(head),
                    cells=tuple(cell for cell, _ in found),
                )


def _pairs(
    cells: Sequence[pd.DataFrame], base: str, head: str, visits: Visits
) -> Iterator[tuple[BuildCell, _Logs]]:
    """The ratio of two builds in each cell and layout that both have."""
    for own in cells:
        names = dict(zip(zip(own["engine"], own["layout"], strict=True), own["name"], strict=True))
        for layout in dict.fromkeys(own["layout"]):
            if (head, layout) in names and (base, layout) in names:
                series = logs(visits, names[head, layout], names[base, layout])
                yield BuildCell(**_ratio(series), **_workload(own), layout=layout), series


def _label(word: str) -> str:
    return word.partition(AT)[2]


# ---- who took part -------------------------------------------------------------------------------


def _engines(rows: pd.DataFrame) -> Iterator[TookPart]:
    known = rows[~rows["engine"].isin((OURS, AGAIN))]
    for (engine, *library), own in known.groupby(["engine", *LIBRARY], sort=False):
        known_as: dict[str, str] = dict(zip(LIBRARY, library, strict=True))
        function, flags = (tuple(filter(None, dict.fromkeys(own[name]))) for name in RAN)
        yield TookPart(engine=engine, **known_as, function=function, flags=flags)
