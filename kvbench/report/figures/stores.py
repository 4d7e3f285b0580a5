"""What storing costs: one token at a time, and a whole prompt beside a copy of as many bytes."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import table
from kvbench.report.figures.choice import usual
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import INK, PAPER, Look, bars, canvas, legend_below
from kvbench.report.words.phrases import number
from kvbench.units import duration

MOST = 20  # bars of a panel
_BAR, _FRAME = 0.3, 0.75  # inches: of a bar with its gap, and of a panel's title and axis
_NS = 1e9
_COPIES = {"copy_gbps": (PAPER, "ordinary copy"), "copy_nt_gbps": (INK, "copy with non-temporal stores")}

COLUMNS = {
    "op": "str",
    "row": "Int64",  # of the points' table
    **dict.fromkeys(("name", "label", "layout", "variant", "dtype", "residency", "regime"), "str"),
    **dict.fromkeys(("batch", "context", "threads"), "Int64"),
    **dict.fromkeys(("token_ns", "token_ns_low", "token_ns_high"), "float64"),  # a token of all KV heads of one layer
    **dict.fromkeys(("gbps", "gbps_low", "gbps_high"), "float64"),  # of compulsory bytes
    **dict.fromkeys(("copy_gbps", "copy_nt_gbps"), "float64"),  # of as many bytes, in the same rounds
}
_SAME = ("op", "name", "layout", "variant", "dtype", "residency", "regime", "batch", "context", "threads")
_SAME += ("gbps", "gbps_low", "gbps_high")


def stores(found: Findings, look: Look) -> Figure:
    every = found.points[found.points["gbps"].notna()]
    rows, left = [], []
    for op in ("append", "bulk"):
        own = every[every["op"] == op]
        shown = _some(own)
        copies = _copies(shown, found.samples)
        rows += [_row(place, point, copies) for place, point in shown.iterrows()]
        left += [f"{len(shown)} of {len(own)} points of {op} are shown"] if len(shown) < len(own) else []
    about = (
        "Append: time to store K and V of one token, all KV heads of one layer. Bulk: GB/s read and written while a "
        "prompt is stored, beside copies of as many bytes in the same rounds. Lines: intervals over launches. "
        f"{'; '.join(left) + '; the table of points has all.' if left else ''}"
    )
    missing = "" if rows else "No append or bulk store has a rate: run kvbench sweep stores."
    title = "What does it cost to store a token, and a whole prompt?"
    return Figure("stores", title, about, table(rows, COLUMNS), lambda t: _draw(t, look), missing)


def _some(points: pd.DataFrame) -> pd.DataFrame:
    """All where they fit; else as many as fit of the usual setting, by most threads."""
    if len(points) > MOST:
        points = usual(points)
        points = points[points["threads"] == points["threads"].max()]
    return points.sort_values(["dtype", "layout", "variant", "context"], kind="stable").head(MOST)


def _copies(points: pd.DataFrame, samples: pd.DataFrame) -> dict[tuple[str, str], float]:
    """By name and program: GB/s, from the median of the launches' median times."""
    own = samples[samples["name"].isin(points["name"]) & samples["program"].isin(("copy", "copy_nt"))]
    times = (1 / own["gbps"]).groupby([own["name"], own["program"], own["launch"]]).median()
    return (1 / times.groupby(level=[0, 1]).median()).to_dict() if len(times) else {}


def _row(row: Any, point: pd.Series, copies: dict[tuple[str, str], float]) -> dict[str, Any]:
    tokens = point["batch"] * (point["context"] if point["op"] == "bulk" else 1)
    times = {"token_ns": "seconds", "token_ns_low": "seconds_low", "token_ns_high": "seconds_high"}
    found = {name: point[name] for name in _SAME} | {"row": row}
    found |= {name: point[seconds] / tokens * _NS for name, seconds in times.items()}
    found |= {f"{form}_gbps": copies.get((point["name"], form)) for form in ("copy", "copy_nt")}
    return found | {"label": point["short"].removeprefix(f"{point['op']} ")}


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    panels = [own for _, own in rows.groupby("op", sort=True)]
    heights = [_FRAME + _BAR * len(own) for own in panels]
    figure, every = canvas(len(panels), height=sum(heights) / len(panels) + 0.3, height_ratios=heights)
    for axes, own in zip(every, panels, strict=True):
        if own["op"].iloc[0] == "append":
            bars(axes, own, "token_ns", own["label"], [duration(time / _NS) for time in own["token_ns"]], look)
            axes.set_title("One token (append)")
            axes.set_xlabel("time of a token in one layer, all KV heads (less is better)")
            axes.xaxis.set_major_formatter(lambda time, _: duration(time / _NS) if time else "0")
        else:
            bars(axes, own, "gbps", own["label"], [f"{number(rate)} GB/s" for rate in own["gbps"]], look)
            axes.set_title("A whole prompt (bulk)")
            axes.set_xlabel("GB/s (more is better)")
            for column, (fill, _) in _COPIES.items():
                axes.plot(own[column], range(len(own)), "D", ms=6, color=INK, mfc=fill, zorder=4)
        axes.set_xlim(left=0)
    if rows[list(_COPIES)].notna().any(axis=None):
        marks = [
            Line2D([], [], color=INK, ls="", marker="D", ms=6, mfc=fill, label=of) for fill, of in _COPIES.values()
        ]
        legend_below(figure, handles=marks)
    return figure
