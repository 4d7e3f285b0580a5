"""The gain from L3 that is left when other memory is read between two passes of a layer."""

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import between as shown
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import Figure, Look

_ABOUT = (
    "The speed of a decode of one layer again and again, over the same decode from memory, by the"
    " same threads in the same rounds. Before each pass these threads read other memory, untimed:"
    " the amount on the horizontal axis. Dashed line at 1: no gain is left. Vertical lines:"
    " intervals over launches."
)


def between(found: Findings, look: Look) -> Figure | None:
    """The figure; None if no point was timed with enough such reads."""
    table = shown.between(found)
    if table.empty:
        return None
    lines = table.drop_duplicates("line")
    alike = lines["dtype"].duplicated().any()
    colours = {} if alike else {row.line: look.colour(row.dtype) for row in lines.itertuples()}
    panel = Panel(
        x="share",
        y="gain",
        x_label="memory read between two passes, as a multiple of L3",
        y_label="times as fast as from memory",
        by="line",
        low="gain_low",
        high="gain_high",
        text=lambda share: f"{share:.3g}",
        levels=((1.0, ""),),
    )
    title = "How much of L3's gain is left when other memory is read in between?"
    return chart("between", title, _ABOUT, table, [panel], colours)
