"""The cost of storing: one token at a time; a prompt or a growing cache, beside a copy of as many
bytes.
"""

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import stores as shown
from kvbench.model.point import ONE_TOKEN
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

_BAR, _FRAME = 0.3, 0.75  # inches of a bar with its gap, and of a panel's title and axis

_TITLES = {
    "append": "One token (append)",
    "logits": "Logits of one token",
    "bulk": "A whole prompt (bulk)",
    "repack": "A cache that grows in place (repack)",
    "transpose": "A prompt to head-major order (transpose)",
}
# what is timed in ops on one token
_OF_TOKEN = {"append": "a token in one layer, all KV heads", "logits": "the logits of one token"}


def stores(found: Findings, look: Look) -> Figure:
    own = shown.stores(found)
    left = "".join(
        f" {some} of {every} points of {op} are shown; the table of points has all of them."
        for op, (some, every) in own.left.items()
    )
    about = (
        "Append: time to store K and V of one token, for all KV heads of one layer. Logits: time to"
        " copy a token's logits to their place. Other panels: GB/s read and written while a prompt"
        " is stored or transposed, or a cache grows, beside the fastest copy of as many bytes in"
        " the same rounds. Each bar is from visits of its own; the findings have ratios of layouts,"
        " timed side by side. Lines: intervals over launches."
    )
    missing = "" if len(own.table) else "No store has a rate: run kvbench sweep stores."
    title = "How long does it take to store a token, and a prompt?"
    return Figure(
        "stores",
        title,
        about + left,
        own.table,
        lambda table: _draw(table, look, own.copied),
        missing,
    )


def _draw(rows: pd.DataFrame, look: Look, copied: bool) -> Canvas:
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
    if copied:
        copy = {"ls": "", "marker": "D", "ms": 6, "mfc": PAPER}
        legend_below(figure, handles=legend_lines({"the fastest copy of as many bytes": copy}))
    return figure
