"""Other engines beside ours in each cell, sorted by their share of a read; and the cell that is
shown first.
"""

import pandas as pd

from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.ratios import UNDECIDED
from kvbench.analysis.shown.usual import places
from kvbench.model import AGAIN, OURS
from kvbench.native import default_library

_WIDE = "16"  # suffix of 16-bit formats, the default cache format of engines


def peers(found: Findings) -> pd.DataFrame:
    """For each cell our fastest kernel, and every peer with a share or an error. Cells with most
    threads come first.

    label: an engine, with its layout if it has several. best_share: of an engine over all formats.
    """
    rows = found.peers[found.peers["engine"] != AGAIN]
    ours = rows["engine"] == OURS
    rows = rows[~ours | ~rows["cell"].duplicated()]  # ours come first, from the fastest on
    rows = rows[rows["share"].notna() | (rows["error"] != "")]
    layouts = rows["engine"].map(rows.groupby("engine")["layout"].nunique())
    ours = rows["engine"] == OURS
    both = rows["engine"] + ", " + rows["layout"]
    rows = rows.assign(
        ours=ours,
        decided=rows["word"] != UNDECIDED,
        label=rows["engine"].where((layouts == 1) | ours, both),
        row=rows["name"].map(places(found.points)),
        format=rows["dtype"].map(_order()),
    )
    alike = rows.groupby(["model", "threads", "context", "q_len", "attends", "label"])
    rows = rows.assign(best_share=alike["share"].transform("max"))
    order = ["threads", "context", "q_len", "attends", "format", "cell", "share"]
    falls = ("threads", "share")
    rows = rows.sort_values(order, ascending=[name not in falls for name in order], kind="stable")
    return rows.drop(columns="format")


def _order() -> dict[str, int]:
    """The position of each format in the library's list."""
    return {dtype: place for place, dtype in enumerate(default_library().words("dtype"))}


def shown_first(rows: pd.DataFrame, page: Workload) -> int:
    """The cell of the page's workload with 16 bits; or the cell most like it."""

    def unlike(cell: int) -> tuple[bool, ...]:
        row = rows[rows["cell"] == cell].iloc[0]
        return (
            row["q_len"] > 1,
            bool(row["attends"]),
            page.model not in row["model"].split(", "),
            row["context"] != page.context,
            row["threads"] != page.threads,
            not row["dtype"].endswith(_WIDE),
        )

    return min(map(int, rows["cell"].unique()), key=unlike)


def reach(rows: pd.DataFrame) -> float:
    """The largest share or end of its interval, at least 1 for the read itself."""
    return float(max(1.0, rows["share"].max(), rows["share_high"].max()))


def undecided(rows: pd.DataFrame) -> int:
    """The number of launches if it was too small for an interval of a ratio; else 0."""
    ratios = rows[~rows["ours"] & rows["times"].notna() & rows["times_low"].isna()]
    return int(ratios["launches"].max()) if len(ratios) else 0
