"""The staircase: read bandwidth against footprint, with what the levels hold."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"  # words stay words, to be searched and restyled
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from kvbench.analysis.machine import Profile, usual_pages
from kvbench.model import Ceiling
from kvbench.units import counted, cpu_text, size

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # told apart by the colour-blind
_MARKS = "os^Dv<"


def draw(profile: Profile, path: Path) -> None:
    """Plain reads, one CPU set for each number of threads: medians, and the interval of each as a band."""
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    pages = usual_pages(profile.ceilings)
    for place, cpus in enumerate(sorted({len(cpus): cpus for cpus in reversed(profile.cpu_sets)}.values(), key=len)):
        steps = [c for c in profile.ceilings if c.probe.cpus == cpus and c.probe.pages == pages]
        _line(axes, sorted((c for c in steps if _plain_read(c)), key=lambda c: c.probe.bytes), place)
    _scales(axes)
    _ends(axes, profile)
    brand = profile.machine.facts["brand"].value or "unknown CPU"
    isa = profile.ceilings[-1].probe.isa
    axes.set_title(f"Plain read bandwidth by footprint: {brand}, {isa}, {pages} pages", loc="left", pad=24)
    axes.legend(facecolor="white", framealpha=0.95, edgecolor="none", title="median and interval of launches")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _plain_read(ceiling: Ceiling) -> bool:
    return ceiling.probe.op == "read" and not ceiling.probe.distance


def _line(axes: Axes, steps: list[Ceiling], place: int) -> None:
    if not steps:
        return
    counts, colour = [c.probe.bytes for c in steps], _COLOURS[place % len(_COLOURS)]
    cpus = steps[0].probe.cpus
    label = f"{counted(len(cpus), 'thread')}: CPU{'s' if len(cpus) > 1 else ''} {cpu_text(cpus)}"
    axes.fill_between(counts, [c.low for c in steps], [c.high for c in steps], color=colour, alpha=0.15, lw=0)
    axes.plot(counts, [c.median for c in steps], color=colour, marker=_MARKS[place % len(_MARKS)], ms=5, label=label)


def _scales(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("footprint of all threads together")
    axes.set_ylabel("GB/s (10⁹ bytes read per second, log scale)")
    axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: size(count)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.grid(alpha=0.25, lw=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _ends(axes: Axes, profile: Profile) -> None:
    """Where each level of the largest CPU set ends: declared as a line, seen as a dashed one."""
    cpus = profile.cpu_sets[-1]
    top, seen = axes.get_xaxis_transform(), False
    for capacity in profile.capacities:
        users = sum(
            1 for cache in profile.machine.caches if cache.level == capacity.level and set(cache.cpus) & set(cpus)
        )
        axes.axvline(capacity.declared * users, color="0.5", lw=1)
        label = f"L{capacity.level} declared"
        axes.text(
            capacity.declared * users, 1.01, label, transform=top, ha="center", va="bottom", fontsize=8, color="0.3"
        )
        if capacity.effective:
            label = None if seen else f"capacity that {counted(len(cpus), 'thread')} saw"
            axes.axvline(capacity.effective * users, color="0.5", lw=1, ls="--", label=label)
            seen = True
