"""What the words of a grid's axes stand for on this machine."""

from typing import Any

from kvbench.machine.placement import POWERS
from kvbench.model import DEFAULTS
from kvbench.plan.site import Site
from kvbench.suite import AXES
from kvbench.suite.axes import BY_CPU, BY_KERNEL, NODES, words
from kvbench.suite.values import ALL, Axes


def resolved(axes: Axes, op: str, site: Site) -> dict[str, tuple[Any, ...]]:
    """All axes, for one op: "all" spelled out, "best" named, what is not asked for by default."""
    found = {axis: axes.get(axis, (DEFAULTS[axis],)) for axis in AXES} | {"op": (op,)}
    for axis, values in found.items():
        if axis not in ("threads", "op") and ALL in values:
            found[axis] = site.words_of(op, axis) if axis in BY_KERNEL else words(axis)
    if found["variant"] == (None,):
        first, *others = site.words_of(op, "variant")
        found["variant"] = (first, *(word for word in others if word in site.library.foreign_variants))
    return found | _named(found, site)


def _named(axes: Axes, site: Site) -> Axes:
    """What "best" and "powers" mean, where they are asked for; no place may be named that this machine lacks."""
    best = {"isa": site.isa}
    found = {
        axis: tuple(dict.fromkeys(best[axis] if value == DEFAULTS[axis] else value for value in axes[axis]))
        for axis in BY_CPU
        if axis in axes
    }
    for axis, nodes in (("cpus", site.cpu_nodes), ("memory", site.nodes)):
        if NODES in (asked := axes.get(axis, ())):
            found[axis] = tuple(dict.fromkeys(one for word in asked for one in (nodes if word == NODES else (word,))))
    places = found.get("cpus", axes.get("cpus", (None,)))
    for word in places:
        site.refuse_unknown(word)
    if POWERS in (threads := axes.get("threads", ())):
        series = sorted({count for word in places for count in site.powers(word)})
        found["threads"] = tuple(dict.fromkeys((*series, *(value for value in threads if value != POWERS))))
    return found


def constraint(table: Axes, site: Site) -> Axes:
    """ "all" of an axis of words matches any."""
    axes = {axis: values for axis, values in table.items() if axis == "threads" or ALL not in values}
    return axes | _named(axes, site)
