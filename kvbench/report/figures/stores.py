"""What storing costs: one token at a time; and a whole prompt, or a cache that grows, beside a copy
of as many bytes.
"""

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.model.point import ONE_TOKEN
from kvbench.report.figures.choice import usual
from kvbench.report.figures.look import (
    INK,
    PAPER,
    Figure,
    Look,
    bars,
    canvas,
    legend_below,
    legend_lines,
)
from kvbench.report.words.phrases import number
from kvbench.units import duration

MOST = 20  # bars of a panel
_BAR, _FRAME = 0.3, 0.75  # inches: of a bar with its gap, and of a panel's title and axis

_TITLES = {
    "append": "One token (append)",
    "logits": "Logits of one token",
    "bulk": "A whole prompt (bulk)",
    "repack": "A cache that grows in place (repack)",
    "transpose": "A prompt to head-major order (transpose)",
}
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
    *("token_ns", "token_ns_low", "token_ns_high"),  # of a token of all KV heads of one layer
    *("gbps", "gbps_low", "gbps_high"),  # of compulsory bytes
    *("witness", "copy_gbps"),  # a copy in the same rounds
]
# what is timed, of ops that take one token
_OF_TOKEN = {"append": "a token in one layer, all KV heads", "logits": "the logits of one token"}


def stores(found: Findings, look: Look) -> Figure:
    every = found.points[found.points["gbps"].notna()]
    own = {op: every[every["op"] == op] for op in _TITLES}
    shown = {op: _some(points) for op, points in own.items()}
    left = "".join(
        f" {len(shown[op])} of {len(points)} points of {op} are shown; the table of points has all."
        for op, points in own.items()
        if len(shown[op]) < len(points)
    )
    about = (
        "Append: time to store K and V of one token, all KV heads of one layer; logits: to copy"
        " those of a token to their place. Others: GB/s read and written while a prompt is stored"
        " or turned or a cache grows, beside the fastest copy of as many bytes in the same rounds."
        " Lines: intervals over launches."
    )
    rows = pd.concat(shown.values())
    tokens = rows["batch"] * rows["context"].mask(rows["op"].isin(ONE_TOKEN), 1)
    times = {
        f"token_ns{end}": (rows[f"seconds{end}"] / tokens * 1e9).astype(float)
        for end in ("", "_low", "_high")
    }
    short = [row.short.removeprefix(f"{row.op} ") for row in rows.itertuples()]
    rows = rows.assign(row=rows.index, short=short, **times)[COLUMNS]
    missing = "" if len(rows) else "No store has a rate: run kvbench sweep stores."
    title = "What does it cost to store a token, and a whole prompt?"
    return Figure("stores", title, about + left, rows, lambda table: _draw(table, look), missing)


def _some(points: pd.DataFrame) -> pd.DataFrame:
    """All where they fit; else as many as fit of the usual setting, by most threads."""
    if len(points) > MOST:
        points = usual(points)
        points = points[points["threads"] == points["threads"].max()]
    return points.sort_values(["dtype", "layout", "variant", "context"], kind="stable").head(MOST)


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    panels = [own for _, own in rows.groupby("op", sort=True)]
    heights = [_FRAME + _BAR * len(own) for own in panels]
    figure, every = canvas(
        len(panels), height=sum(heights) / len(panels) + 0.3, height_ratios=heights
    )
    for axes, own in zip(every, panels, strict=True):
        op = own["op"].iloc[0]
        if op in ONE_TOKEN:
            bars(
                axes,
                own,
                "token_ns",
                own["short"].tolist(),
                [duration(time / 1e9) for time in own["token_ns"]],
                look,
            )
            axes.set_xlabel(f"time of {_OF_TOKEN[op]} (less is better)")
            axes.xaxis.set_major_formatter(lambda time, _: duration(time / 1e9) if time else "0")
        else:
            bars(
                axes,
                own,
                "gbps",
                own["short"].tolist(),
                [f"{number(rate)} GB/s" for rate in own["gbps"]],
                look,
            )
            axes.set_xlabel("GB/s (more is better)")
            axes.plot(own["copy_gbps"], range(len(own)), "D", ms=6, color=INK, mfc=PAPER, zorder=4)
        axes.set_title(_TITLES[op])
        axes.set_xlim(left=0)
    if rows.loc[~rows["op"].isin(ONE_TOKEN), "copy_gbps"].notna().any():
        copy = {"ls": "", "marker": "D", "ms": 6, "mfc": PAPER}
        legend_below(figure, handles=legend_lines({"the fastest copy of as many bytes": copy}))
    return figure
