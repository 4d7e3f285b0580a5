"""Whether L3 is faster than memory: ratios of the same rounds against the share of L3 that a slice
takes.
"""

import pandas as pd

from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import middle
from kvbench.regime import levels
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import Figure, Look
from kvbench.units import counted

COLUMNS = (
    "question",
    "series",
    "threads",
    "kernel",
    "group",
    "footprint",
    "share",
    "ratio",
    "ratio_low",
    "ratio_high",
)


def l3(found: Findings, look: Look) -> Figure:
    """Plain reads of a layer over those of memory; and its decode over the same from memory."""
    inside = decodes_of(found.points)
    inside = inside[inside["l3_reads"].notna()].sort_values("footprint")
    inside = inside.assign(share=[round(_share(row, found), 2) for _, row in inside.iterrows()])
    machine = [middle(own) for _, own in inside.groupby(["threads", "share"])]
    decoded = inside[inside["l3_gain"].notna()]
    rows = [
        *(_told("plain reads", "l3_reads", row) for row in machine),
        *(_told("decode", "l3_gain", row) for _, row in decoded.iterrows()),
    ]
    about = (
        "Both were timed in the same rounds, by the same threads; bars are intervals over launches."
        " Left: a plain read of one layer in L3 against a plain read of memory (the median of alike"
        " points). Right: decode of that layer against the same decode from memory. At 1 L3 gains"
        " nothing. Layer / L3: its size over the L3 that the machine declares. G: query heads on a"
        " KV head."
    )
    panels = [
        Panel(
            "share",
            "ratio",
            "layer / L3",
            "times as fast from L3",
            title=question.capitalize(),
            by="series",
            low="ratio_low",
            high="ratio_high",
            where=("question", question),
            log="x",
            text="{:.2g}".format,
            levels=((1.0, "as fast as memory"),),
        )
        for question in ("plain reads", "decode")
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    colours = {_series(row, "decode"): look.colour(row["dtype"]) for _, row in inside.iterrows()}
    title = "How much faster is L3 than memory, for reads and for decode?"
    missing = "No layer that fits L3 was read beside memory: run kvbench sweep l3fit."
    return chart("l3", title, about, table, panels, colours, missing)


def _told(question: str, of: str, row: pd.Series) -> dict[str, object]:
    own = {name: row[name] for name in ("threads", "kernel", "group", "share")}
    ratio = {f"ratio{end}": row[f"{of}{end}"] for end in ("", "_low", "_high")}
    return {
        "question": question,
        "series": _series(row, question),
        **own,
        "footprint": row["footprint"],
        **ratio,
    }


def _series(row: pd.Series, question: str) -> str:
    threads = counted(int(row["threads"]), "thread")
    own = (
        ""
        if question == "plain reads"
        else f"{row['dtype']} {row['layout']}, G = {row['group']:.0f}, "
    )
    return own + threads


def _share(row: pd.Series, found: Findings) -> float:
    *_, last = levels(found.machine, found.cpus[row["name"]]).values()
    return row["footprint"] / sum(cache.size for cache in last)
