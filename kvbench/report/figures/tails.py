"""How much longer the slowest steps take: p50 and p99 of passes that were timed one by one."""

from typing import Any

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import table
from kvbench.model import NEIGHBOUR
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.choice import left_out, setting, usual
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import Look

COLUMNS = {
    "series": "str",
    "row": "Int64",  # of the points' table
    **dict.fromkeys(("layout", "dtype", "residency", "beside"), "str"),
    **dict.fromkeys(("threads", "context"), "Int64"),
    **dict.fromkeys(("p50_us", "p99_us", "tail"), "float64"),  # microseconds; p99 over p50
}
_MOST = 6  # lines


def tails(found: Findings, look: Look) -> Figure:
    every = found.points[(found.points["op"] == "decode") & found.points["pass_p99"].notna()]
    shown = usual(every)
    shown = shown[shown["threads"] == shown["threads"].max()].sort_values(["dtype", "layout", "context"])
    rows = pd.DataFrame([each for row, point in shown.iterrows() for each in _told(row, point)], columns=list(COLUMNS))
    rows = rows[rows["series"].isin(list(dict.fromkeys(rows["series"]))[:_MOST])]
    about = (
        f"Of decodes: {setting(shown)}. Passes of 20 µs or more, timed one by one: half took no longer than p50, 99 % of "
        "them no longer than p99. Beside a neighbour: while other cores of the same nodes streamed memory (--neighbour). "
        f"{left_out(rows['row'].nunique(), every)}"
    )
    panels = [
        Panel("context", "p50_us", "context, tokens", "p50 of a pass, µs", by="series", log="x"),
        Panel("context", "tail", "context, tokens", "p99 / p50", by="series", log="x", levels=((1.0, "no tail"),)),
    ]
    colours = {series: look.colour(dtype) for series, dtype in zip(rows["series"], rows["dtype"], strict=True)}
    missing = "No decode has enough passes of 20 µs or more: run kvbench sweep standard."
    found = table(rows.to_dict("records"), COLUMNS)
    return chart("tails", "How slow are the slowest steps?", about, found, panels, colours, missing)


def _told(row: Any, point: pd.Series) -> list[dict[str, Any]]:
    own = {name: point[name] for name in ("layout", "dtype", "residency", "threads", "context")} | {"row": row}
    found = []
    for name, beside in (("pass", ""), (NEIGHBOUR, ", beside a neighbour")):
        p50, p99 = point[f"{name}_p50"], point[f"{name}_p99"]
        if pd.notna(p99):
            series = f"{point['dtype']} {point['layout']} {point['residency']}{beside}"
            times = {"p50_us": p50 * 1e6, "p99_us": p99 * 1e6, "tail": p99 / p50}
            found.append(own | {"series": series, "beside": beside.removeprefix(", beside a ")} | times)
    return found
