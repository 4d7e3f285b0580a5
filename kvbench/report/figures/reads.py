"""A machine's own staircase: plain reads against footprint, with what the levels hold."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.measured.columns import machine_name
from kvbench.analysis.measured.machines import Probed, usual_pages
from kvbench.model import PLAIN, Ceiling
from kvbench.report.figures.look import COLOURS, FAINT, MARKS, bytes_axis, canvas, legend_below, rate_axis, styled
from kvbench.units import counted, cpu_text


@styled()
def reads(profile: Probed) -> Canvas:
    """One CPU set for each number of threads: medians, and the interval of each as bars."""
    figure, (axes,) = canvas(height=5.2)
    pages = usual_pages(profile.ceilings)
    for place, cpus in enumerate(sorted({len(cpus): cpus for cpus in reversed(profile.cpu_sets)}.values(), key=len)):
        steps = [c for c in profile.ceilings if c.probe.cpus == cpus and c.probe.pages == pages and _plain_read(c)]
        _line(axes, sorted(steps, key=lambda c: c.probe.bytes), place)
    bytes_axis(axes, "footprint of all threads together")
    rate_axis(axes, "GB/s (10⁹ bytes read per second, log scale)", log=True)
    _ends(axes, profile)
    name, isa = machine_name(profile.machine), profile.ceilings[-1].probe.isa
    axes.set_title(f"Plain read bandwidth by footprint: {name}, {isa}, {pages} pages", pad=24)
    legend_below(figure, columns=3, title="median and interval of launches", alignment="left")
    return figure


def _plain_read(ceiling: Ceiling) -> bool:
    return ceiling.probe.op == "read" and ceiling.form == PLAIN


def _line(axes: Axes, steps: list[Ceiling], place: int) -> None:
    if not steps:
        return
    counts, colour, cpus = [c.probe.bytes for c in steps], COLOURS[place % len(COLOURS)], steps[0].probe.cpus
    label = f"{counted(len(cpus), 'thread')}: CPU{'s' * (len(cpus) > 1)} {cpu_text(cpus)}"
    bars = [[c.median - c.low for c in steps], [c.high - c.median for c in steps]]
    look = {"color": colour, "marker": MARKS[place % len(MARKS)], "ms": 5, "lw": 1.4, "elinewidth": 0.8}
    axes.errorbar(counts, [c.median for c in steps], bars, label=label, **look)


def _ends(axes: Axes, profile: Probed) -> None:
    """Where each level of the largest CPU set ends: declared as a line, seen as a dashed one."""
    cpus = profile.cpu_sets[-1]
    seen = f"capacity that {counted(len(cpus), 'thread')} saw"
    for capacity in profile.capacities:
        caches = [cache for cache in profile.machine.caches if cache.level == capacity.level]
        users = sum(1 for cache in caches if set(cache.cpus) & set(cpus))
        declared = capacity.declared * users
        axes.axvline(declared, color=FAINT, lw=1)
        at = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom", "fontsize": 8, "color": FAINT}
        axes.text(declared, 1.01, f"L{capacity.level} declared", **at)
        if capacity.effective:
            axes.axvline(capacity.effective * users, color=FAINT, lw=1, ls="--", label=seen)
            seen = None
