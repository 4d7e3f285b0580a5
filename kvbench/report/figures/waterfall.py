"""Where the bandwidth goes: from what the memory could give, over what the run's own reads get, to the kernel."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from kvbench.analysis.columns import table
from kvbench.analysis.findings import Findings
from kvbench.model import Machine
from kvbench.report.figures.choice import decodes, left_out, setting, usual
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import FAINT, GRID, INK, Look, canvas, legend_below, tag, whiskers_on_bar
from kvbench.units import counted

_BAR = 0.33  # inches of a bar and the gap below it
_FRAME = 1.1  # inches of the axis below and the title above

COLUMNS = {
    **dict.fromkeys(("step", "label"), "str"),
    "row": "Int64",  # of the points' table; none of what is no point
    **dict.fromkeys(("name", "layout", "dtype"), "str"),
    **dict.fromkeys(("gbps", "gbps_low", "gbps_high"), "float64"),
    "of": "str",  # what `share` is a share of
    "share": "float64",
}


def waterfall(found: Findings, look: Look) -> Figure:
    every = decodes(found.points)
    far = every[(every["regime"] == "DRAM") & every["dram_gbps"].notna()]
    best = _best(usual(far))
    rows = list(_steps(found.machine, best)) if len(best) else []
    about = (
        "How much of the memory's bandwidth is left after each step. Read ceiling: the run's own reads from DRAM by "
        "the same threads, the better of the plain and the prefetching form. Twin: those reads and no more. "
        "Each percentage is a share of what its line names, formed in the same rounds where that is the twin. "
        f"{_theory(found.machine)} {_shown(best, every)}"
    )
    missing = (
        ""
        if rows
        else "No decode was measured from DRAM beside a read ceiling of its own threads: run kvbench sweep quick."
    )
    title = "From the memory's bandwidth to the kernel's"
    return Figure("waterfall", title, about, table(rows, COLUMNS), lambda t: _draw(t, look), missing)


def _best(points: pd.DataFrame) -> pd.DataFrame:
    """The fastest layout of each dtype: of most threads, where most dtypes were measured, at the longest context."""
    if points.empty:
        return points
    same = ["threads", "cpus", "context", "residency"]
    groups = points.groupby(same, sort=True)["dtype"].agg("nunique").reset_index()
    last = groups.sort_values(["threads", "dtype", "context"], kind="stable").iloc[-1]
    own = points[(points[same] == last[same]).all(axis=1)]
    fastest = own.loc[own.groupby("dtype")["gbps"].idxmax()]
    each = fastest["compulsory_bytes"]
    return fastest.loc[each.sort_values(ascending=False, kind="stable").index]


def _theory(machine: Machine) -> str:
    fact = machine.facts.get("dram_peak")
    if fact and fact.value is not None:
        said = f"{fact.source}, {fact.confidence} confidence" + (f": {fact.note}" if fact.note else "")
        return f"Theoretical DRAM peak, of all sockets together: {fact.value:.3g} GB/s ({said})."
    return f"Theoretical DRAM peak: unknown{': ' + fact.note if fact and fact.note else ''}."


def _shown(best: pd.DataFrame, every: pd.DataFrame) -> str:
    if best.empty:
        return ""
    first = best.iloc[0]
    threads = counted(int(first["threads"]), "thread")
    words = f"{threads} on CPUs {first['cpus']}, context {first['context']}, {first['residency']}"
    return f"Shown: {words}; the fastest layout of each dtype; {setting(best)}. {left_out(len(best), every)}"


# ---- the steps -------------------------------------------------------------------------------------------------------


def _steps(machine: Machine, best: pd.DataFrame) -> Iterator[dict[str, Any]]:
    fact = machine.facts.get("dram_peak")
    peak = fact.value if fact else None
    first = best.iloc[0]
    threads = counted(int(first["threads"]), "thread")
    if peak:
        yield {"step": "theoretical", "label": "theoretical DRAM peak", "gbps": peak}
    ceiling = {"gbps": first["dram_gbps"], "gbps_low": first["dram_low"], "gbps_high": first["dram_high"]}
    share = {"of": "the theoretical DRAM peak", "share": first["dram_gbps"] / peak} if peak else {}
    yield {"step": "ceiling", "label": f"DRAM read ceiling, {threads}"} | ceiling | share
    for row, point in best.iterrows():
        yield from _pair(row, point)


def _pair(row: Any, point: pd.Series) -> Iterator[dict[str, Any]]:
    """The twin of a point, where it has one, and the point itself."""
    facts = {"row": row} | {name: point[name] for name in ("name", "layout", "dtype")}
    label = f"{point['dtype']} {point['layout']}"
    ceiling = {"of": "the DRAM read ceiling", "share": point["gbps"] / point["dram_gbps"]}
    if pd.notna(point["twin_gbps"]):
        twin = {"gbps": point["twin_gbps"], "of": ceiling["of"], "share": point["twin_gbps"] / point["dram_gbps"]}
        yield {"step": "twin", "label": f"{label}: its twin"} | facts | twin
        ceiling = {"of": "its twin", "share": point["efficiency"]}
    rates = {name: point[name] for name in ("gbps", "gbps_low", "gbps_high")}
    yield {"step": "kernel", "label": f"{label}: decode"} | facts | rates | ceiling


# ---- how they are drawn ----------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    figure, (axes,) = canvas(height=_FRAME + _BAR * len(rows))
    for place, step in enumerate(rows.itertuples()):
        _bar(axes, place, step, look)
    axes.set_yticks(range(len(rows)), rows["label"])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel("GB/s")
    legend_below(figure, columns=4, handles=_legend(rows))
    return figure


def _bar(axes: Axes, place: int, step: Any, look: Look) -> None:
    colour = {"theoretical": GRID, "ceiling": INK, "twin": FAINT}.get(step.step) or look.colour(step.dtype)
    (drawn,) = axes.barh(place, step.gbps, height=0.72, color=colour)
    row = None if pd.isna(step.row) else int(step.row)
    if row is not None:
        tag(drawn, row)
    if not pd.isna(step.gbps_low):
        whiskers_on_bar(axes, row, (step.gbps, place), (step.gbps_low, step.gbps_high))
    share = "" if pd.isna(step.share) else f", {step.share:.0%} of {step.of}"
    at = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9}
    axes.text(1.02, place, f"{step.gbps:.3g} GB/s{share}", **at)


def _legend(rows: pd.DataFrame) -> list[Patch]:
    steps = set(rows["step"])
    words = {"ceiling": (INK, "read ceiling"), "twin": (FAINT, "twin: the same reads and nothing else")}
    found = [Patch(color=GRID, label="theoretical, not measured")] if "theoretical" in steps else []
    return found + [Patch(color=colour, label=label) for step, (colour, label) in words.items() if step in steps]
