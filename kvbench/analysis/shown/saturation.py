"""What more threads bring: series with enough numbers of threads, beside reads of memory."""

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import POINT

MOST = 6  # series of a panel
FEWEST = 4  # numbers of threads: with fewer, a figure shows no more than a sentence
_LINEAR = 16  # threads up to which their axis is linear
CEILING = "fastest read of memory"

# columns of the points that are added to the table of series
_FACTS = ("op", "layout", "dtype", "residency", "context")


def saturation(found: Findings) -> pd.DataFrame:
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
    return pd.concat([rows, _ceiling(rows)], ignore_index=True)


def possible(found: Findings) -> bool:
    """Whether the machine has enough CPUs for so many numbers of threads."""
    return len(found.machine.allowed) >= FEWEST


def wide(table: pd.DataFrame) -> bool:
    """Whether the axis of threads must be logarithmic."""
    return bool((table["threads"] > _LINEAR).any())


def _chosen(every: pd.DataFrame) -> list[str]:
    """The series with the most numbers of threads for each layout and dtype; of these, the ones
    with the most.
    """
    counts = every.groupby("series")["threads"].transform("nunique")
    every, counts = every[counts >= FEWEST], counts[counts >= FEWEST]
    last = (
        every.assign(counts=-counts)
        .drop_duplicates("series", keep="last")
        .sort_values("counts", kind="stable")
    )
    shown = last.drop_duplicates(["where", "layout", "dtype"]).groupby("where").head(MOST)
    return list(shown["series"])


def _ceiling(rows: pd.DataFrame) -> pd.DataFrame:
    """The line of the fastest reads, beside decodes from memory."""
    far = rows[rows["where"] == "memory"].groupby("threads", as_index=False)["ceiling_gbps"].max()
    return far.rename(columns={"ceiling_gbps": "gbps"}).assign(where="memory", line=CEILING)
