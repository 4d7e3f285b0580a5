"""The table of peers beside ours. A cell is one shape, dtype and set of CPUs; all its points were
timed in the same rounds.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from kvbench.analysis.means.ratios import Visits, complete, judged, logs
from kvbench.analysis.measured.columns import POINT, band, count, ends, number, table, text
from kvbench.analysis.measured.estimates import enough
from kvbench.analysis.measured.rates import measured
from kvbench.model import AGAIN, DEFAULTS, HEADS, OURS, Engine, Record
from kvbench.model.geometry import Geometry
from kvbench.model.point import SHAPE

# The library of an engine, and what ran of it; empty if the run does not record it.
LIBRARY = {
    "version": text("version of the engine's package"),
    "library": text("file with its kernels"),
    "sha256": text("digest of that file"),
    "python": text("interpreter that ran it; empty for kvbench's own"),
}
RAN = {
    "function": text("function that a step calls, by the engine's own name; for ours the kernel"),
    "flags": text(
        "other arguments of that function, and CPU features that the engine found, in its"
        " words; for ours the schedule"
    ),
}
PEERS = {
    "cell": count("number of the cell"),
    "model": text("all models of this shape"),
    "dtype": text("number format of the cache"),
    "threads": count("number of threads"),
    "context": count("tokens"),
    "q_len": count("queries of each sequence in a step"),
    "attends": text(
        "special features of its attention, in short: a window, kept tokens, sinks, a cap,"
        " slopes, a width of V; empty if none"
    ),
    "engine": text(
        "whose kernel it is, with @ and a label if several builds are measured; again: ours,"
        " after the peers of each round"
    ),
    "layout": text("layout of the cache"),
    "variant": text("variant of our kernel"),
    "gbps": number(
        "GB/s: K, V and scales, once for each KV head, as that engine stores them, over time"
    ),
    "tokens_per_second": number("tokens per second: if a step did nothing but read the cache"),
    "share": number("share of the rate of a read of the same rows"),
    **ends("share", "share of that rate"),  # if there are enough launches for an interval
    "max_abs_err": number("absolute: largest difference of an output element to float64"),
    "overhead": number("share of a pass: the time of a pass with next to nothing to read"),
    **band("times", "ratio: its time over that of our fastest kernel, from the same rounds"),
    **band(
        "queries_times",
        "ratio: its time over its own time with one query per step, from the same rounds",
    ),
    "launches": count("launches that measured both"),
    "word": text(
        "faster than ours, slower, same within noise, or not decided; empty for our fastest kernel"
    ),
    "failed": count("launches without a number"),
    "error": text("the first such error, in the engine's words; else empty"),
    "name": text("name of the point"),
    **LIBRARY,
    **RAN,
}
_ENDS = tuple(f"{name}_{end}" for name in ("share", "times") for end in ("low", "high"))
_QUERIES = {"queries_times": "times", "queries_times_low": "low", "queries_times_high": "high"}
_ALIKE = [name for name in POINT if name not in ("name", "q_len")]
_ATTENDS = {
    field.name: field
    for field in SHAPE
    if field.name in ("v_dim", "window", "kept", "sinks", "softcap", "alibi")
}
_CELL = [*HEADS, "context", "q_len", *_ATTENDS, "dtype", "cpus", "pages", "chase"]
_Rows = list[dict[str, Any]]


def peers(
    points: pd.DataFrame,
    tokens: pd.DataFrame,
    records: Iterable[Record],
    engines: Sequence[Engine] = (),
    models: Sequence[Geometry] = (),
) -> pd.DataFrame:
    """A row for each engine of a cell: ours, the peers from the fastest on, and ours again.
    `engines`: their libraries. `models`: whose shapes cells may have.
    """
    theirs = points[points["engine"] != OURS]
    known = tokens.set_index("name")["tokens_per_second"].to_dict() if len(tokens) else {}
    visits, libraries = complete(records), {each.name: _library(each) for each in engines}
    singles = _singles(points)
    # our points in other layouts were timed in other rounds
    of_lines = (points["engine"] != OURS) | (points["layout"] == DEFAULTS["layout"])
    cells = points[of_lines].merge(theirs[_CELL].drop_duplicates(), on=_CELL)
    rows: _Rows = []
    for number_of, (facts, own) in enumerate(cells.groupby(_CELL, sort=False)):
        shared = {"cell": number_of, "model": _named(models, facts[: len(HEADS)])}
        rows += (
            row | shared | libraries.get(row["engine"], {})
            for row in _cell(own, known, singles, visits)
        )
    return table(rows, PEERS)


def _singles(points: pd.DataFrame) -> dict[str, str]:
    """For each point with several queries, the same point with one query, by name."""
    alike = points[_ALIKE].astype(object).where(points[_ALIKE].notna(), None)
    keys = dict(zip(points["name"], alike.itertuples(index=False, name=None), strict=True))
    single = {keys[name]: name for name in points.loc[points["q_len"] == 1, "name"]}
    several = points.loc[points["q_len"] > 1, "name"]
    return {name: single[keys[name]] for name in several if keys[name] in single}


def _named(models: Sequence[Geometry], heads: tuple[int, ...]) -> str:
    own = {model.name for model in models if tuple(getattr(model, n) for n in HEADS) == heads}
    return ", ".join(sorted(own))


def _library(engine: Engine) -> dict[str, str]:
    facts = (engine.version, engine.path, engine.sha256, engine.python)
    return dict(zip(LIBRARY, facts, strict=True))


def _cell(
    own: pd.DataFrame, known: Mapping[str, float], singles: Mapping[str, str], visits: Visits
) -> _Rows:
    own = own.assign(other=own["engine"] != OURS).sort_values(["other", "seconds"], kind="stable")
    least = own.loc[~own["other"], "seconds"].min()
    fastest = next((name for name in own.loc[~own["other"]].sort_values("seconds")["name"]), "")
    found = []
    for row in own.to_dict("records"):
        kept = {
            **{name: row[name] for name in PEERS if name in row},
            "attends": _attends(row),
            **{f"share{end}": row[f"efficiency{end}"] for end in _ends(row)},
            "times": row["seconds"] / least,
            "variant": "" if row["other"] else row["variant"],
            **_ran(row, visits.get(row["name"], ())),
        }
        if row["name"] != fastest:
            kept |= _beside(logs(visits, row["name"], fastest))
        if row["name"] in singles:
            kept |= _over_one(logs(visits, row["name"], singles[row["name"]]))
        if row["name"] in known:
            kept["tokens_per_second"] = known[row["name"]]
        if row["other"] and (seen := visits.get(row["name"])):
            kept["overhead"] = median(record.overhead for record in seen) / row["seconds"]
        found.append(kept)
    return [*found, *_again(found, visits)]


def _attends(row: Mapping[str, Any]) -> str:
    own = (field for name, field in _ATTENDS.items() if row[name] != field.default)
    return ", ".join(field.short.format(row[field.name]) for field in own)


def _ends(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The ends that a share has: an interval only if a ratio of as many launches would have one."""
    known = 0 if pd.isna(row["efficiency"]) else row["launches"] - row["uneven"]
    return ("", "_low", "_high") if enough(known) else ("",)


def _ran(row: Mapping[str, Any], seen: Sequence[Record]) -> dict[str, str]:
    if not row["other"]:
        return {"function": row["kernel"], "flags": row["ran"] and f"schedule {row['ran']}"}
    return {name: next(filter(None, (getattr(each, name) for each in seen)), "") for name in RAN}


def _beside(found: Mapping[int, float]) -> dict[str, Any]:
    """The columns of the ratio."""
    ratio = judged(found)
    ends = {f"times_{end}": ratio.pop(end) for end in ("low", "high") if end in ratio}
    return ratio | ends


def _over_one(found: Mapping[int, float]) -> dict[str, Any]:
    ratio = judged(found)
    return {name: ratio[part] for name, part in _QUERIES.items() if part in ratio}


def _again(found: _Rows, visits: Visits) -> Iterable[dict[str, Any]]:
    for row in found:
        seen = [record for record in visits.get(row["name"], ()) if AGAIN in record.traffic]
        if seen and AGAIN in (shares := measured(seen).shares):
            times = shares[AGAIN].median
            slower = {
                name: row.get(name) and row[name] / times
                for name in ("gbps", "tokens_per_second", "share")
            }
            again = {"engine": AGAIN, "times": row["times"] * times, "word": ""}
            yield row | slower | again | dict.fromkeys((*_ENDS, *_QUERIES))
