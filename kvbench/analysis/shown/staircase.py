"""Speed of decodes over their working set, beside reads of such sizes."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import usual
from kvbench.model import Ceiling, Machine
from kvbench.regime import classify
from kvbench.units import cpu_text

STEPS = 400  # steps of the axis in the search for where levels begin and end
SPAN = 4.0  # a series belongs here if its working sets differ by more than this ratio
_HEADS = ("q_heads", "kv_heads", "head_dim")
_SETTING = ("variant", "batch", "window", "isa", "pages", *_HEADS)
_SAME = [
    "layout",
    "dtype",
    "group",
    "residency",
    "context",
    "regime",
    "gbps",
    "gbps_low",
    "gbps_high",
    "twin_gbps",
    *_SETTING,
]
COLUMNS = ["kind", "row", "short", "threads", "cpus", *_SAME, "footprint", "footprint_end"]
COLUMNS += ["visits", "of_visits"]
POINT, READ, MEMORY, LEVEL = "point", "read", "memory", "level"


def staircase(found: Findings) -> pd.DataFrame:
    points = _stairs(decodes_of(found.points))
    return pd.DataFrame(_rows(found, points) if len(points) else [], columns=COLUMNS)


def _stairs(every: pd.DataFrame) -> pd.DataFrame:
    """The decodes to draw, on the CPU set with most threads.

    Dtypes and heads that were measured at several levels are used, or all if none was. Of the
    heads, those of most points are drawn, and those with the fewest query heads per KV head, which
    the core limits least.
    """
    if every.empty:
        return every
    points = usual(every, _HEADS)
    points = points[points["cpus"] == points.loc[points["threads"].idxmax(), "cpus"]]
    sizes = points.groupby(["dtype", *_HEADS])["footprint"]
    tall = points[sizes.transform("max") > SPAN * sizes.transform("min")]
    if len(tall):
        fewest = tall[tall["group"] == tall["group"].min()]
        points = tall.loc[sorted({*usual(tall).index, *usual(fewest).index})]
    # the twin's rate, from the rate and its share in the same rounds
    points = points.assign(twin_gbps=points["gbps"] / points["efficiency"])
    fastest = points.assign(size=np.log2(points["footprint"].astype(float)).round(1))
    fastest = fastest.sort_values("gbps", ascending=False, kind="stable")
    fastest = fastest.drop_duplicates(["dtype", "group", "residency", "size"])
    return fastest.sort_values(["dtype", "group", "footprint"])


def _rows(found: Findings, points: pd.DataFrame) -> list[dict[str, Any]]:
    first = points.iloc[0]
    memory = list(_memory(found))
    plain = memory[0]["gbps"] if memory else 0.0
    every = _reads(found.ceilings, first)  # reads of memory only if faster than plain ones
    reads = [read for read in every if read["regime"] != "DRAM" or read["gbps"] > plain]
    own = points.assign(kind=POINT, row=points.index)
    sizes = [*points["footprint"], *(read["footprint"] for read in reads)]
    cpus = found.cpus[first["name"]]
    levels = _levels(found.machine, cpus, min(sizes) / 1.5, max(sizes) * 1.5)
    rows = [*levels, *reads, *memory]
    rows += own[["kind", "row", "short", "footprint", *_SAME]].to_dict("records")
    return [{"threads": int(first["threads"]), "cpus": first["cpus"]} | row for row in rows]


def _memory(found: Findings) -> Iterator[dict[str, Any]]:
    """Plain reads of memory, in each of its states."""
    reads = found.answers.reads
    for state in reads.states:
        rates = {"gbps": state.gbps, "gbps_low": state.low, "gbps_high": state.high}
        visits = {"visits": state.visits, "of_visits": reads.visits}
        yield {"kind": MEMORY, "short": "plain read", "regime": "DRAM"} | rates | visits


def _reads(ceilings: Iterable[Ceiling], point: pd.Series) -> Iterator[dict[str, Any]]:
    """Reads by the point's threads, instruction set and pages: the fastest form of each size."""
    own = [c for c in ceilings if c.probe.op == "read" and cpu_text(c.probe.cpus) == point["cpus"]]
    own = [c for c in own if (c.probe.isa, c.probe.pages) == (point["isa"], point["pages"])]
    for count, alike in groupby(
        sorted(own, key=lambda c: c.probe.bytes), key=lambda c: c.probe.bytes
    ):
        best = max(alike, key=lambda c: c.median)
        rates = {"gbps": best.median, "gbps_low": best.low, "gbps_high": best.high}
        yield {
            "kind": READ,
            "short": "fastest read",
            "regime": best.level,
            "footprint": count,
        } | rates


def _levels(
    machine: Machine, cpus: tuple[int, ...], low: float, high: float
) -> Iterator[dict[str, Any]]:
    """Where each level begins and ends between two sizes."""
    start = low
    for word, sizes in groupby(
        np.geomspace(low, high, STEPS), lambda size: classify(machine, cpus, size).word
    ):
        *_, end = sizes
        yield {"kind": LEVEL, "short": word, "footprint": start, "footprint_end": end}
        start = end
