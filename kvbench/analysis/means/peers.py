"""Peers beside ours: a cell is one shape, dtype and set of CPUs, and all of it was timed in the
same rounds.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Annotated, Any

import numpy as np
import pandas as pd

from kvbench.analysis.judge import paired
from kvbench.analysis.measured.columns import band, count, number, table, text
from kvbench.analysis.measured.rates import measured
from kvbench.grouping import grouped
from kvbench.model import AGAIN, OURS, Record, quotients
from kvbench.model.annotated import about

PEERS = {
    "cell": count("a number of what is compared"),
    "model": text("all of this shape"),
    "dtype": text("number format of the cache"),
    "threads": count("how many"),
    "context": count("tokens"),
    "engine": text("whose kernel it is; again: ours, after the peers of each round"),
    "layout": text("of the cache"),
    "variant": text("the way of doing it, of ours"),
    "gbps": number(
        "GB/s: K, V and scales once for each KV head as that engine stores them, over time"
    ),
    "tokens_per_second": number("tokens per second: were reading the cache all that a step does"),
    "share": number("share of the rate of a read of the same rows"),
    "max_abs_err": number("absolute: largest difference of an output element to float64"),
    "overhead": number("share of a pass, that one takes with next to nothing to read"),
    **band("times", "ratio: its time over that of the fastest of ours, by the same rounds"),
    "launches": count("that measured both"),
    "word": text(
        "faster than ours, slower, same within noise, or not decided; empty of the fastest of ours"
    ),
    "error": text("why there are no numbers; else empty"),
    "name": text("of the point"),
}
_TIMES = ("times", "times_low", "times_high")
_Visits = dict[str, list[Record]]  # by the point's name
_Rows = list[dict[str, Any]]
SAME, UNDECIDED = "same within noise", "not decided"
_CELL = ["q_heads", "kv_heads", "head_dim", "context", "dtype", "cpus", "pages"]


@dataclass(frozen=True, slots=True)
class WorkloadRatio:
    """The fastest of ours and of the peers."""

    model: Annotated[str, about("all of this shape")]
    dtype: Annotated[str, about("number format of the cache")]
    threads: Annotated[int, about("how many")]
    context: Annotated[int, about("tokens")]
    best: Annotated[str, about("engine and layout of the fastest peer; empty if none has a rate")]
    best_share: Annotated[
        float | None, about("share of a read of the same rows, that it reaches; null if unknown")
    ]
    times: Annotated[
        float | None, about("ratio: the fastest peer's time over ours; null if unknown")
    ]
    low: Annotated[
        float | None,
        about("ratio: low end of its interval; null where launches are too few for one"),
    ]
    high: Annotated[
        float | None,
        about("ratio: high end of its interval; null where launches are too few for one"),
    ]
    launches: Annotated[int, about("that measured both")]
    word: Annotated[
        str,
        about(
            "what the peer is: faster, slower, same within noise, or not decided; empty without one"
        ),
    ]
    drift: Annotated[
        float | None, about("ratio: ours after the peers over ours before them; null if unknown")
    ]


@dataclass(frozen=True, slots=True)
class Together:
    """All cells: the geometric mean of how long the fastest peer takes beside the fastest of
    ours.
    """

    cells: Annotated[int, about("that have a peer with a rate")]
    times: Annotated[float | None, about("ratio: that mean; null if unknown")]
    low: Annotated[
        float | None,
        about("ratio: low end of its interval; null where launches are too few for one"),
    ]
    high: Annotated[
        float | None,
        about("ratio: high end of its interval; null where launches are too few for one"),
    ]
    launches: Annotated[int, about("that measured all of these cells")]
    word: Annotated[
        str,
        about(
            "what peers are: faster, slower, same within noise, or not decided; empty without one"
        ),
    ]
    drift: Annotated[
        float | None,
        about("share of ours: how far ours before and after the peers differ at most"),
    ] = None


@dataclass(frozen=True, slots=True)
class Beside:
    """Peers beside ours, in the cells of a run and in all of them."""

    cells: tuple[WorkloadRatio, ...] = ()
    together: Together = Together(0, None, None, None, 0, "")


def peers(points: pd.DataFrame, tokens: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """A row for each engine of a cell: ours, the peers from the fastest on, and ours again."""
    theirs = points[points["engine"] != OURS]
    known = (
        tokens.set_index("name")[["model", "tokens_per_second"]] if len(tokens) else pd.DataFrame()
    )
    visits = _visits(records)
    cells = points.merge(theirs[_CELL].drop_duplicates(), on=_CELL)
    rows: list[dict[str, Any]] = []
    for number_of, (_, own) in enumerate(cells.groupby(_CELL, sort=False)):
        rows += _cell(number_of, own, known, visits)
    return table(rows, PEERS)


def _visits(records: Iterable[Record]) -> _Visits:
    """Those that are complete, by the point's name."""
    return grouped((record.point.name, record) for record in records if record.complete)


def _cell(number_of: int, own: pd.DataFrame, known: pd.DataFrame, visits: _Visits) -> _Rows:
    own = own.assign(other=own["engine"] != OURS).sort_values(["other", "seconds"], kind="stable")
    least = own.loc[~own["other"], "seconds"].min()
    fastest = next((name for name in own.loc[~own["other"]].sort_values("seconds")["name"]), "")
    models = [known.at[name, "model"] for name in own["name"] if name in known.index]
    found = []
    for row in own.to_dict("records"):
        kept = {
            **{name: row[name] for name in PEERS if name in row},
            "cell": number_of,
            "model": models[0] if models else "",
            "share": row["efficiency"],
            "times": row["seconds"] / least,
            "variant": "" if row["other"] else row["variant"],
        }
        if row["name"] != fastest:
            kept |= _held(list(_logs(visits, row["name"], fastest).values()))
        if row["name"] in known.index:
            kept["tokens_per_second"] = known.at[row["name"], "tokens_per_second"]
        if row["other"] and (seen := visits.get(row["name"])):
            kept["overhead"] = median(record.overhead for record in seen) / row["seconds"]
        found.append(kept)
    return [*found, *_again(found, visits)]


def _again(found: Sequence[dict[str, Any]], visits: _Visits) -> Iterable[dict[str, Any]]:
    for row in found:
        seen = [record for record in visits.get(row["name"], ()) if AGAIN in record.traffic]
        if seen and AGAIN in (shares := measured(seen).shares):
            times = shares[AGAIN].median
            slower = {
                name: row.get(name) and row[name] / times
                for name in ("gbps", "tokens_per_second", "share")
            }
            again = {"engine": AGAIN, "times": row["times"] * times, "word": ""}
            yield row | slower | again | dict.fromkeys(("times_low", "times_high"))


def _logs(visits: _Visits, name: str, ours: str) -> dict[int, float]:
    """By launch, the logarithm of how long a pass takes beside one of ours: the median of the
    rounds that have both.
    """
    others = {(record.launch, record.part): record for record in visits.get(ours, ())}
    found = {}
    for record in visits.get(name, ()):
        if other := others.get((record.launch, record.part)):
            if ratios := quotients(
                *([s for s in each.samples if s.program == "point"] for each in (record, other))
            ):
                found[record.launch] = math.log(median(ratios))
    return found


def _held(logs: Sequence[float]) -> dict[str, Any]:
    """The ratio as the judge has it, with its interval where launches are enough for one, and what
    follows.
    """
    if not logs:
        return {"launches": 0, "word": UNDECIDED}
    found = paired(np.array(logs))
    held = {"times": math.exp(found.estimate), "launches": len(logs), "word": UNDECIDED}
    if found.enclosed:
        held |= {"times_low": math.exp(found.low), "times_high": math.exp(found.high)}
        held["word"] = found.way or (SAME if found.same else UNDECIDED)
    return held


def beside(rows: pd.DataFrame, records: Iterable[Record]) -> Beside:
    """From the table of peers, and the records that it was made of."""
    found = tuple(_cells(rows))
    drifts = [abs(each.drift - 1) for each in found if each.drift is not None]
    together = _together(rows, _visits(records))
    return Beside(found, replace(together, drift=max(drifts, default=None)))


def _together(rows: pd.DataFrame, visits: _Visits) -> Together:
    """A launch counts where it has every cell."""
    series = []
    for _, own in rows.groupby("cell", sort=False):
        theirs = _rated(own)
        if len(theirs):
            fastest = own.loc[(own["engine"] == OURS) & own["times"].notna()].sort_values("times")[
                "name"
            ]
            best = theirs.loc[theirs["times"].idxmin(), "name"]
            series.append(_logs(visits, best, fastest.iloc[0]) if len(fastest) else {})
    launches = set.intersection(*map(set, series)) if series else set()
    held = _held([fmean(each[launch] for each in series) for launch in sorted(launches)])
    times, low, high = (held.get(name) for name in _TIMES)
    word = held["word"] if series else ""
    return Together(len(series), times, low, high, held["launches"], word)


def _rated(own: pd.DataFrame) -> pd.DataFrame:
    """The peers of a cell that have a rate."""
    return own[~own["engine"].isin((OURS, AGAIN)) & own["times"].notna()]


def _cells(rows: pd.DataFrame) -> Iterator[WorkloadRatio]:
    for _, own in rows.groupby("cell", sort=False):
        first, again = own.iloc[0], own[own["engine"] == AGAIN]
        theirs = _rated(own)
        best = theirs.loc[theirs["times"].idxmin()] if len(theirs) else None
        before = own.loc[own["name"].isin(again["name"]) & (own["engine"] == OURS), "gbps"]
        share, times, low, high = (
            None if best is None or pd.isna(best[name]) else float(best[name])
            for name in ("share", *_TIMES)
        )
        yield WorkloadRatio(
            model=first["model"],
            dtype=first["dtype"],
            threads=int(first["threads"]),
            context=int(first["context"]),
            best="" if best is None else f"{best['engine']}, {best['layout']}",
            best_share=share,
            times=times,
            low=low,
            high=high,
            launches=0 if best is None else int(best["launches"]),
            word="" if best is None else str(best["word"]),
            drift=(
                float(again["gbps"].iloc[0] / before.iloc[0])
                if len(again) and len(before)
                else None
            ),
        )
