"""What more threads bring, and how many are enough."""

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import POINT
from kvbench.analysis.measured.scaling import KNEE
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import FAINT, Figure, Look

MOST = 6  # series of a panel
_LINEAR = 16  # threads up to which their axis is linear
_CEILING = "fastest read of memory"

# Of the points, beside what is found of each series.
_FACTS = ("op", "layout", "dtype", "residency", "context")


def saturation(found: Findings, look: Look) -> Figure:
    facts = found.points[["name", *_FACTS]].assign(row=found.points.index)
    every = found.saturation.merge(facts, on="name").astype(
        {"row": "Int64", "context": POINT["context"]}
    )
    every = every[every["op"] == "decode"]
    every = every.assign(where=every["regime"].eq("DRAM").map({True: "memory", False: "a cache"}))
    rows = every[every["series"].isin(_chosen(every))]
    rows = rows.assign(line=rows["dtype"] + " " + rows["layout"])
    rows = rows.sort_values(["line", "threads", "gbps"], kind="stable")
    rows = rows.drop_duplicates(["where", "series", "threads"], keep="last")
    wide = "x" if len(rows) and rows["threads"].max() > _LINEAR else ""
    panels = [
        Panel(
            "threads",
            "gbps",
            "threads",
            "GB/s",
            title=f"Decode from {where}",
            by="line",
            low="gbps_low",
            high="gbps_high",
            where=("where", where),
            log=wide,
            text="{:.0f}".format,
        )
        for where in ("memory", "a cache")
        if where in set(rows["where"])
    ]
    about = (
        "GB/s of decode by number of threads: for each dtype and layout the context with most"
        " thread counts, and the fastest placement of the threads. Lines: intervals over launches."
        f" The finding on threads names the fewest that reach {KNEE:.0%} of the best rate."
    )
    colours = {
        line: look.colour(dtype) for line, dtype in zip(rows["line"], rows["dtype"], strict=True)
    }
    table = pd.concat([rows, _ceiling(rows)], ignore_index=True)
    missing = "No decode was measured with several numbers of threads: run kvbench sweep threads."
    return chart(
        "saturation",
        "Do more threads help?",
        about,
        table,
        panels,
        colours | {_CEILING: FAINT},
        missing,
    )


def _chosen(every: pd.DataFrame) -> list[str]:
    """Of each layout and dtype the series with most thread counts; of these those with most."""
    counts = every.groupby("series")["threads"].transform("nunique")
    last = (
        every.assign(counts=-counts)
        .drop_duplicates("series", keep="last")
        .sort_values("counts", kind="stable")
    )
    return (
        last.drop_duplicates(["where", "layout", "dtype"])
        .groupby("where")
        .head(MOST)["series"]
        .tolist()
    )


def _ceiling(rows: pd.DataFrame) -> pd.DataFrame:
    """A line of its own, beside decodes from memory."""
    far = rows[rows["where"] == "memory"].groupby("threads", as_index=False)["ceiling_gbps"].max()
    return far.rename(columns={"ceiling_gbps": "gbps"}).assign(where="memory", line=_CEILING)
