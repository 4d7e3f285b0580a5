"""Tables of the latency of memory beside a KV scan."""

from collections.abc import Iterator
from typing import Any

from kvbench.analysis.answers import Answers
from kvbench.analysis.answers.latency import Latency, Place
from kvbench.report.cells import answered, texts, titled, told, worded
from kvbench.report.sheet import Columns, Sheet, plain, sheet
from kvbench.report.words import said as words
from kvbench.report.words.phrases import level, narrow
from kvbench.units import size


def chases(found: Answers) -> Sheet:
    """A row for each point that was timed beside a pointer chase."""
    own = found.latency
    columns: Columns = {
        "beside": ("place", str),
        "idle, ns": told("idle"),
        "times idle": answered("busy", narrow),
        "times plain reads": answered("alike", narrow),
        "against plain reads": worded("alike", "latency", "verdict"),
        "% of its rate alone": answered("slowed", lambda found: narrow(found).replace("%", "")),
        **plain("threads"),
        "context": ("context", "{:,}".format),
        "chase on CPU": ("cpu", str),
        "cycle": ("bytes", size),
    }
    title, about = texts("chases")
    return sheet("chases", title, about, columns, [_row(own, place) for place in own.places])


def loaded(found: Answers) -> Sheet:
    """A row for each load at each share of its rate."""
    own = found.latency
    columns: Columns = {
        "beside": ("place", str),
        "load": ("name", str),
        "% of its rate": ("share", str),
        "GB/s of the load": told("load"),
        "GB/s in all": told("gbps"),
        "ns, p50": told("ns"),
        "ns, p95": told("tail"),
        "times idle": told("times"),
    }
    rows = [
        _row(own, place)
        | {"name": words("latency", "load", curve.load, place.dtype)}
        | {name: getattr(step, name) for name in step.__slots__}
        for place in own.places
        for curve in place.curves
        for step in curve.steps
    ]
    return titled("loaded", columns, rows)


def idle(found: Answers) -> Sheet:
    """Latency of caches and memory without a load."""
    columns: Columns = {
        **plain("chase"),
        "on CPU": ("cpu", str),
        "its data": ("bytes", size),
        "ns": told("ns"),
        "after over before": told("drift"),
    }
    return titled("idle", columns, list(_idle(found.latency)))


def _idle(own: Latency) -> Iterator[dict[str, Any]]:
    for each in own.idle:
        own_facts = {name: getattr(each, name) for name in ("cpu", "bytes", "ns")}
        yield own_facts | {"chase": level(each.level), "drift": None}
    for place in own.places:
        name = words("latency", "place", own, place)
        for state, ns, drift in (
            ("others sleep", place.idle, place.drift),
            ("others spin in L1", place.spin, None),
        ):
            yield {
                "chase": f"memory, {name}: {state}",
                "cpu": place.cpu,
                "bytes": place.bytes,
                "ns": ns,
                "drift": drift,
            }


def _row(own: Latency, place: Place) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__slots__} | {
        "place": words("latency", "place", own, place)
    }
