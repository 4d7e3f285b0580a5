"""Figures that --plot draws: what a cache takes, what a step of a model reads, and what plain reads
reach.
"""

from typing import Any

import pandas as pd

from kvbench.analysis.measured.columns import machine_name
from kvbench.analysis.measured.machines import MachineProfile, usual_pages
from kvbench.model import PLAIN
from kvbench.model.explained import Explained
from kvbench.model.size import Decoder, Fit
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import INK, Figure
from kvbench.units import GIB, KIB, MIB, counted, cpu_text, size

_NEAR = 16.0  # times smaller or larger than all sizes: what lies further away is not marked
_CONTEXT = "context, tokens of a sequence"


def sizes(table: pd.DataFrame, decoder: Decoder, fit: Fit, memory: int | None) -> Figure:
    """A line for each dtype, beside what a machine's caches and memory hold. `table`: context,
    dtype, bytes.
    """
    marked = (
        *((level.capacity, f"L{level.level}, {size(level.capacity)}") for level in fit.levels),
        *([(memory, f"memory, {size(memory)}")] if memory else []),
    )
    low, high = table["bytes"].min() / _NEAR, table["bytes"].max() * _NEAR
    heads = (
        f"{counted(decoder.layers, 'layer')}, {counted(decoder.kv_heads, 'KV head')} of"
        f" {decoder.head_dim}"
    )
    panel = Panel(
        x="context",
        y="mib",
        x_label=_CONTEXT,
        y_label="MiB of K, V and scales",
        title=(
            f"{decoder.model or 'Cache'}: {heads}, {counted(decoder.batch, 'sequence')}; levels of"
            f" {fit.machine}"
        ),
        by="dtype",
        log="xy",
        text=_tokens,
        levels=tuple((count / MIB, name) for count, name in marked if low <= count <= high),
    )
    about = (
        "The whole cache by the formula; dashed: all caches of a level that serve the threads"
        " together, and memory."
    )
    shown = table.assign(
        mib=table["bytes"] / MIB, dtype=table["dtype"].map(_alike(table))
    ).drop_duplicates()
    return chart("size", "Size by context", about, shown, (panel,))


def _alike(table: pd.DataFrame) -> dict[str, str]:
    """Dtypes of one size share a line, and its name."""
    counts = table.groupby("dtype", sort=False)["bytes"].agg(tuple)
    names = {count: ", ".join(counts.index[counts == count]) for count in counts}
    return {dtype: names[count] for dtype, count in counts.items()}


def explained(found: Explained) -> Figure:
    """A line for each format, and one for the weights."""
    cells = [(row.context, cell) for row in found.rows for cell in row.cells]
    rows = [
        *(("bytes", row.context, "weights", found.read) for row in found.rows if found.read),
        *(("bytes", context, cell.dtype, cell.bytes) for context, cell in cells),
        *(("rate", context, cell.dtype, cell.tokens) for context, cell in cells),
    ]
    table = pd.DataFrame(rows, columns=["panel", "context", "line", "value"])
    shared: dict[str, Any] = {
        "x": "context",
        "y": "shown",
        "x_label": _CONTEXT,
        "by": "line",
        "text": _tokens,
    }
    panels = (
        Panel(
            title=f"{found.model}: read by a step",
            y_label="GiB",
            where=("panel", "bytes"),
            log="xy",
            **shared,
        ),
        Panel(
            title=f"on {found.machine}",
            y_label="tokens per second",
            where=("panel", "rate"),
            log="x",
            **shared,
        ),
    )
    scaled = table["value"].where(table["panel"] == "rate", table["value"] / GIB)
    about = (
        "Left: bytes of weights and of K and V in each format. Right: at plain reads of the weights"
        " and measured decodes."
    )
    return chart(
        "explain", "What a model reads", about, table.assign(shown=scaled), panels, {"weights": INK}
    )


def reads(profile: MachineProfile) -> Figure:
    """By working set, of one CPU set for each number of threads: medians, and the interval of each
    as a line.
    """
    pages, rows = usual_pages(profile.ceilings), []
    for cpus in sorted({len(cpus): cpus for cpus in reversed(profile.cpu_sets)}.values(), key=len):
        label = f"{counted(len(cpus), 'thread')}, CPU{'s' * (len(cpus) > 1)} {cpu_text(cpus)}"
        own = [
            c for c in profile.ceilings if c.cpus == cpus and c.pages == pages and c.op == "read"
        ]
        rows += [(label, c.bytes, c.median, c.low, c.high) for c in own if c.form == PLAIN]
    table = pd.DataFrame(rows, columns=["threads", "bytes", "gbps", "low", "high"]).sort_values(
        "bytes", kind="stable"
    )
    ends = [f"L{c.level} {size(c.effective or c.declared)}" for c in profile.capacities]
    title = (
        f"{machine_name(profile.topology)}, {profile.ceilings[-1].isa}, {pages} pages;"
        f" {', '.join(ends)}"
    )
    panel = Panel(
        "bytes",
        "gbps",
        "working set of all threads together",
        "GB/s, plain read",
        title=title,
        by="threads",
        low="low",
        high="high",
        log="xy",
        text=size,
    )
    return chart("reads", "", "", table, [panel])


def _tokens(count: int) -> str:
    return f"{count // KIB}k" if count % KIB == 0 else f"{count:,}"
