"""Figures that --plot draws: the size of a cache, what a step of a model reads, and the rate of
plain reads.
"""

from typing import Any

import pandas as pd

from kvbench.analysis.measured.columns import machine_name
from kvbench.analysis.measured.machines import MachineProfile, usual_pages
from kvbench.analysis.shown import sizes as shown
from kvbench.model.explained import Explained
from kvbench.model.size import Decoder, Fit
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import INK, Figure, tokens
from kvbench.units import counted, size

_CONTEXT = "context, tokens of a sequence"


def sizes(table: pd.DataFrame, decoder: Decoder, fit: Fit, memory: int | None) -> Figure:
    """The size of a cache by context, a line for each dtype, with the sizes of the machine's caches
    and memory. `table`: context, dtype, bytes.
    """
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
        text=tokens,
        levels=tuple(shown.levels(table, fit, memory)),
    )
    about = (
        "Bytes of the cache in all layers. Dashed: the size of memory, and of all caches of a level"
        " that serve these threads."
    )
    return chart("size", "Size by context", about, shown.sizes(table), (panel,))


def explained(found: Explained) -> Figure:
    """Bytes and tokens per second by context: a line for each format, and one for the weights."""
    shared: dict[str, Any] = {
        "x": "context",
        "y": "shown",
        "x_label": _CONTEXT,
        "by": "line",
        "text": tokens,
    }
    panels = (
        Panel(
            title=f"{found.model}: read by a step",
            y_label="GiB",
            where=("panel", shown.BYTES),
            log="xy",
            **shared,
        ),
        Panel(
            title=f"on {found.machine}",
            y_label="tokens per second",
            where=("panel", shown.RATE),
            log="x",
            **shared,
        ),
    )
    about = (
        "Left: bytes of the weights, and of K and V in each format. Right: tokens per second with"
        " the best reads of the weights and measured decodes."
    )
    table = shown.explained(found)
    return chart("explain", "What a model reads", about, table, panels, {"weights": INK})


def reads(profile: MachineProfile) -> Figure:
    """Plain reads by footprint: medians, with the interval of each as a line."""
    pages = usual_pages(profile.ceilings)
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
    return chart("reads", "", "", shown.reads(profile), [panel])
