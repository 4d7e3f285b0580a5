"""The cost of storing into a cache: a token, a prompt, or all rows into a larger cache."""

from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.families import alone
from kvbench.analysis.shown.usual import usual
from kvbench.model.point import ONE_TOKEN

MOST = 20  # bars of a panel
OPS = ("append", "logits", "bulk", "repack", "transpose")
COLUMNS = [
    "op",
    "row",
    "name",
    "short",
    "layout",
    "variant",
    "dtype",
    "residency",
    "regime",
    "batch",
    "context",
    "threads",
    *("token_ns", "token_ns_low", "token_ns_high"),  # one token, all KV heads of one layer
    *("gbps", "gbps_low", "gbps_high"),  # compulsory bytes
    # the copy's rate, from the store's rate and its share of the copy in the same rounds
    *("witness", "copy_gbps"),
]


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores to draw. `left`: ops of which some points are not shown: how many are shown, and
    of how many.
    """

    table: pd.DataFrame
    left: dict[str, tuple[int, int]]
    copied: bool  # whether any store is compared with a copy


def stores(found: Findings) -> Stores:
    every = found.points[found.points["gbps"].notna()]
    own = {op: alone(every[every["op"] == op]) for op in OPS}
    shown = {op: _some(points) for op, points in own.items()}
    left = {
        op: (len(shown[op]), len(points))
        for op, points in own.items()
        if len(shown[op]) < len(points)
    }
    rows = pd.concat(shown.values())
    tokens = rows["batch"] * rows["context"].mask(rows["op"].isin(ONE_TOKEN), 1)
    times = {
        f"token_ns{end}": (rows[f"seconds{end}"] / tokens * 1e9).astype(float)
        for end in ("", "_low", "_high")
    }
    short = [row.short.removeprefix(f"{row.op} ") for row in rows.itertuples()]
    copied = rows["gbps"] / rows["copy_fraction"].astype(float)
    rows = rows.assign(row=rows.index, short=short, copy_gbps=copied, **times)[COLUMNS]
    held = rows.loc[~rows["op"].isin(ONE_TOKEN), "copy_gbps"].notna().any()
    return Stores(rows, left, bool(held))


def _some(points: pd.DataFrame) -> pd.DataFrame:
    """All points if they fit; else as many as fit of the usual setting with most threads."""
    if len(points) > MOST:
        points = usual(points)
        points = points[points["threads"] == points["threads"].max()]
    return points.sort_values(["dtype", "layout", "variant", "context"], kind="stable").head(MOST)
