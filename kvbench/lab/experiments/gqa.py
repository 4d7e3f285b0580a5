"""What does it cost when every query head walks its keys and values by itself, and not once for its group?"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pandas as pd

from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.analysis.launches import enclosed
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.measuring import (
    Beside,
    Remembered,
    beside,
    checked,
    named,
    of_twin,
    point,
    refuse_impossible,
)
from kvbench.model import Point
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import model as geometry
from kvbench.units import GB, duration, size
from kvbench.worker.ground import Ground
from kvbench.worker.room import Room

_ONCE = "flash"
_EACH = "perhead"
_WAYS = {_ONCE: "once for its group", _EACH: "each head by itself"}
_GROUPS = (1, 2, 4, 8)


def experiment(asked: Asked, model: str = "llama-3-8b", context: int = 4096, dtype: str = "f16") -> Outcome:
    heads = geometry(model).kv_heads
    groups = [
        [point(asked, model, context, variant=way, dtype=dtype, q_heads=heads * group) for way in _WAYS]
        for group in _GROUPS
    ]
    refuse_impossible(asked, [each for group in groups for each in group])
    found = pd.DataFrame(_measured(asked, groups))
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _notes(found))


def _measured(asked: Asked, groups: Sequence[Sequence[Point]]) -> Iterator[dict[str, Any]]:
    """All walk the same memory; of a group both ways in the same rounds."""
    answers = Remembered()
    with Ground(asked.library, asked.machine) as ground, Room(groups[0][0], ground) as room:
        for points in groups:
            with ExitStack() as owned:
                benches = [owned.enter_context(checked(each, room, answers)) for each in points]
                programs = [named(each.point.variant, each.own) for each in benches]
                taken = beside(room.team(asked.cpus), programs, asked.seed)
                issued = [program.traffic().issued for program in programs]
                efficiency = [of_twin(each, asked.seed) for each in benches]
            for each, loaded, share in zip(points, issued, efficiency, strict=True):
                yield _row(each, taken, loaded) | {"efficiency": share}


def _row(point: Point, taken: Beside, issued: float) -> dict[str, Any]:
    way = point.variant
    return {
        "group": point.shape.group,
        "variant": way,
        "way": _WAYS[way],
        "compulsory_bytes": int(taken.moved[way]),
        "issued_bytes": int(issued),
        "issued_times": issued / taken.moved[way],
        **enclosed("seconds", taken.seconds(way)),
        **enclosed("times", taken.times(way, _ONCE)),
        **enclosed("gbps", taken.rate(way)),
        "issued_gbps": issued / GB / taken.seconds(way).median,
        "rounds": taken.seconds(way).launches,
    }


_COLUMNS = (
    Column("group", "query heads per KV head"),
    Column("way", "K and V are walked"),
    Column("compulsory_bytes", "compulsory", size),
    Column("issued_bytes", "issued", size),
    Column("seconds", "time", duration),
    Column("times", "times once", "{:.2f}".format),
    Column("gbps", "GB/s", number),
    Column("issued_gbps", "issued GB/s", number),
    Column("efficiency", "of twin", "{:.0%}".format),
)


def _notes(found: pd.DataFrame) -> tuple[str, ...]:
    return (
        "compulsory: K and V once for each KV head, with query and output; issued: what the core really loads, from "
        "whichever cache has it by then. A tier that has registers for fewer heads than a group has walks a tile again",
        "GB/s are compulsory bytes over time; of twin: share of a pure read of the same rows, as often and by the same threads",
        f"times once: time over that of one walk for the group in the same round, median of {found['rounds'].min()} rounds",
    )


def _figure(found: pd.DataFrame) -> Figure:
    table = found.assign(ms=found["seconds"] * 1e3, low=found["seconds_low"] * 1e3, high=found["seconds_high"] * 1e3)
    shared = {"x": "group", "x_label": "query heads per KV head", "by": "way", "bars": True}
    panels = (
        Panel(y="ms", y_label="ms for a layer and token", low="low", high="high", title="Time", **shared),
        Panel(y="issued_times", y_label="bytes issued per compulsory byte", title="Loads", **shared),
        Panel(
            y="gbps",
            y_label="GB/s of compulsory bytes",
            low="gbps_low",
            high="gbps_high",
            title="From memory",
            **shared,
        ),
        Panel(y="issued_gbps", y_label="GB/s of issued bytes", title="Into the core", **shared),
    )
    about = "One decode step of one layer from memory. Whiskers: intervals over rounds."
    return chart("gqa", "Grouped query heads", about, table, panels)


def _sentence(found: pd.DataFrame) -> str:
    each = found[found["variant"] == _EACH]
    most = each.iloc[-1]
    between = f"{most['times_low']:.2f}..{most['times_high']:.2f} over {most['rounds']} rounds"
    if most["times_low"] > 1:
        judged = f"and that costs time beyond the noise ({between})"
    elif most["times_high"] < 1:
        judged = f"and yet it is faster, beyond the noise ({between}): one walk for the group does not pay here"
    else:
        judged = f"and that makes no difference that the noise would let through ({between})"
    return (
        f"With {listed(map(str, each['group']))} query heads on each KV head, walking K and V for each head by itself "
        f"takes {listed(f'{times:.2f}' for times in each['times'])} times as long as once for the group: with "
        f"{most['group']} it issues {number(most['issued_times'])} bytes for each that memory must give, {judged}."
    )
