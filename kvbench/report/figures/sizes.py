"""Bytes of a cache against context, one line for each dtype, beside what the caches and the memory of a machine hold."""

import pandas as pd

from kvbench.model.size import Decoder, Fit
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.units import KIB, MIB, counted, size

_NEAR = 16.0  # times smaller or larger than all sizes: what lies further away is not marked


def sizes(table: pd.DataFrame, decoder: Decoder, fit: Fit, memory: int | None) -> Figure:
    """`table`: context, dtype, bytes. `memory`: bytes of the machine's."""
    marked = [(level.capacity, f"L{level.level}, {size(level.capacity)}") for level in fit.levels]
    marked += [(memory, f"memory, {size(memory)}")] if memory else []
    low, high = table["bytes"].min() / _NEAR, table["bytes"].max() * _NEAR
    heads = f"{counted(decoder.layers, 'layer')}, {counted(decoder.kv_heads, 'KV head')} of {decoder.head_dim}"
    panel = Panel(
        x="context",
        y="mib",
        x_label="context, tokens of a sequence",
        y_label="MiB of K, V and scales",
        title=f"{decoder.model or 'Cache'}: {heads}, {counted(decoder.batch, 'sequence')}; levels of {fit.machine}",
        by="dtype",
        log="xy",
        text=tokens_text,
        levels=tuple((count / MIB, name) for count, name in marked if low <= count <= high),
    )
    about = "The whole cache by the formula; dashed: all caches of a level that serve the threads together, and memory."
    shown = table.assign(mib=table["bytes"] / MIB, dtype=table["dtype"].map(_alike(table))).drop_duplicates()
    return chart("size", "Size by context", about, shown, (panel,))


def _alike(table: pd.DataFrame) -> dict[str, str]:
    """Dtypes of one size share a line, and its name."""
    counts = table.groupby("dtype", sort=False)["bytes"].agg(tuple)
    names = {count: ", ".join(counts.index[counts == count]) for count in counts}
    return {dtype: names[count] for dtype, count in counts.items()}


def tokens_text(count: int) -> str:
    return f"{count // KIB}k" if count % KIB == 0 else f"{count:,}"
