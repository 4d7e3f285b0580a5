"""GB/s by number of threads, and how many threads are enough."""

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.scaling import KNEE
from kvbench.analysis.shown import saturation as shown
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import FAINT, Figure, Look


def saturation(found: Findings, look: Look) -> Figure:
    table = shown.saturation(found)
    lines = table[["line", "dtype"]].dropna().itertuples(index=False, name=None)
    colours = {line: look.colour(dtype) for line, dtype in lines}
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
            log="x" if shown.wide(table) else "",
            text="{:.0f}".format,
        )
        for where in dict.fromkeys(table["where"])
    ]
    about = (
        "GB/s of decode by number of threads: for each dtype and layout, the context with most"
        " thread counts and the fastest placement of threads. Lines: intervals over launches."
        f" Enough: the fewest threads that reach {KNEE:.0%} of the best rate."
    )
    missing = (
        f"No decode was measured with {shown.FEWEST} numbers of threads: run kvbench sweep threads."
    )
    return chart(
        "saturation",
        "How many threads are enough?",
        about,
        table,
        panels,
        colours | {shown.CEILING: FAINT},
        missing,
    )
