"""Peers beside ours: a cell is one shape, dtype and set of CPUs, and all of it was timed in the same rounds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Annotated, Any

import pandas as pd

from kvbench.analysis.measured.columns import count, number, table, text
from kvbench.analysis.measured.launches import complete, measured
from kvbench.model import AGAIN, OURS, Record
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
    "gbps": number("GB/s: K, V and scales once for each KV head as that engine stores them, over time"),
    "tokens_per_second": number("tokens per second: were reading the cache all that a step does"),
    "share": number("share of the rate of a read of the same rows"),
    "max_abs_err": number("absolute: largest difference of an output element to float64"),
    "overhead": number("share of a pass, that one takes with next to nothing to read"),
    "times": number("ratio: its time over that of the fastest of ours"),
    "error": text("why there are no numbers; else empty"),
    "name": text("of the point"),
}
_CELL = ["q_heads", "kv_heads", "head_dim", "context", "dtype", "cpus", "pages"]


@dataclass(frozen=True, slots=True)
class Cell:
    """The fastest of ours and of the peers."""

    model: Annotated[str, about("all of this shape")]
    dtype: Annotated[str, about("number format of the cache")]
    threads: Annotated[int, about("how many")]
    context: Annotated[int, about("tokens")]
    best: Annotated[str, about("engine and layout of the fastest peer; empty if none has a rate")]
    best_share: Annotated[float | None, about("share of a read of the same rows, that it reaches; null if unknown")]
    times: Annotated[float | None, about("ratio: the fastest peer's time over ours; null if unknown")]
    drift: Annotated[float | None, about("ratio: ours after the peers over ours before them; null if unknown")]


def peers(points: pd.DataFrame, tokens: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """A row for each engine of a cell: ours, the peers from the fastest on, and ours again."""
    theirs = points[points["engine"] != OURS]
    known = tokens.set_index("name")[["model", "tokens_per_second"]] if len(tokens) else pd.DataFrame()
    visits: dict[str, list[Record]] = {}
    for record in records:
        if complete(record):
            visits.setdefault(record.point.name, []).append(record)
    cells = points.merge(theirs[_CELL].drop_duplicates(), on=_CELL)
    rows: list[dict[str, Any]] = []
    for number_of, (_, own) in enumerate(cells.groupby(_CELL, sort=False)):
        rows += _cell(number_of, own, known, visits)
    return table(rows, PEERS)


def _cell(number_of: int, own: pd.DataFrame, known: pd.DataFrame, visits: dict[str, list[Record]]) -> list[dict]:
    own = own.assign(other=own["engine"] != OURS).sort_values(["other", "seconds"], kind="stable")
    least = own.loc[~own["other"], "seconds"].min()
    models = [known.at[name, "model"] for name in own["name"] if name in known.index]
    found = []
    for row in own.to_dict("records"):
        kept = {name: row[name] for name in PEERS if name in row}
        kept |= {"cell": number_of, "model": models[0] if models else "", "share": row["efficiency"]}
        kept |= {"times": row["seconds"] / least, "variant": "" if row["other"] else row["variant"]}
        if row["name"] in known.index:
            kept["tokens_per_second"] = known.at[row["name"], "tokens_per_second"]
        if row["other"] and (seen := visits.get(row["name"])):
            kept["overhead"] = median(record.overhead for record in seen) / row["seconds"]
        found.append(kept)
    return [*found, *_again(found, visits)]


def _again(found: Sequence[dict[str, Any]], visits: dict[str, list[Record]]) -> Iterable[dict[str, Any]]:
    for row in found:
        seen = [record for record in visits.get(row["name"], ()) if AGAIN in record.traffic]
        if seen and AGAIN in (shares := measured(seen).shares):
            times = shares[AGAIN].median
            slower = {name: row.get(name) and row[name] / times for name in ("gbps", "tokens_per_second", "share")}
            yield row | slower | {"engine": AGAIN, "times": row["times"] * times}


def cells(rows: pd.DataFrame) -> list[Cell]:
    found = []
    for _, own in rows.groupby("cell", sort=False):
        first, again = own.iloc[0], own[own["engine"] == AGAIN]
        theirs = own[~own["engine"].isin((OURS, AGAIN)) & own["times"].notna()]
        best = theirs.loc[theirs["times"].idxmin()] if len(theirs) else None
        before = own.loc[own["name"].isin(again["name"]) & (own["engine"] == OURS), "gbps"]
        found.append(
            Cell(
                *(first["model"], first["dtype"], int(first["threads"]), int(first["context"])),
                best="" if best is None else f"{best['engine']}, {best['layout']}",
                best_share=None if best is None or pd.isna(best["share"]) else float(best["share"]),
                times=None if best is None else float(best["times"]),
                drift=float(again["gbps"].iloc[0] / before.iloc[0]) if len(again) and len(before) else None,
            )
        )
    return found


def mean_times(found: Sequence[Cell]) -> float | None:
    """The geometric mean of how many times as fast ours are as the fastest peer."""
    known = [each.times for each in found if each.times]
    return geometric_mean(known) if known else None
