"""What a step of a model reads, and the tokens per second that this leaves, against context."""

import pandas as pd

from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import INK
from kvbench.report.figures.sizes import tokens_text
from kvbench.units import GIB


def explained(table: pd.DataFrame, model: str, machine: str) -> Figure:
    """`table`: panel, context, line, value."""
    shared = {
        "x": "context",
        "y": "shown",
        "x_label": "context, tokens of a sequence",
        "by": "line",
        "text": tokens_text,
    }
    panels = (
        Panel(title=f"{model}: read by a step", y_label="GiB", where=("panel", "bytes"), log="xy", **shared),
        Panel(title=f"on {machine}", y_label="tokens per second", where=("panel", "rate"), log="x", **shared),
    )
    scaled = table["value"].where(table["panel"] == "rate", table["value"] / GIB)
    about = "Left: bytes of weights and of K and V in each format. Right: at plain reads of the weights and measured decodes."
    return chart("explain", "What a model reads", about, table.assign(shown=scaled), panels, {"weights": INK})
