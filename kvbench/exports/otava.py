"""For Apache Otava, which finds change points in a series of runs: a row of its CSV, and the configuration to it.

It takes no empty cell and wants the rows in the order of time, so a table over several runs keeps the metrics that all
of them have."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kvbench.exports.sound import moment
from kvbench.model import Comparison
from kvbench.texts import cell, csv_text
from kvbench.units import GB

FILE = "kvbench-otava.csv"  # as the configuration names it


class _Metric(NamedTuple):
    column: str
    direction: int  # 1: bigger is better
    value: float


def row(comparison: Comparison) -> str:
    """The head line and one row: that of head."""
    metrics = list(_metrics(comparison))
    heads = ["time", *_attributes(comparison), *(metric.column for metric in metrics)]
    return csv_text(
        [heads, [timed(comparison.created), *_attributes(comparison).values(), *(metric.value for metric in metrics)]]
    )


def config(comparison: Comparison) -> str:
    columns = {metric.column: metric.direction for metric in _metrics(comparison)}
    return configured(comparison.machine, FILE, _attributes(comparison), columns)


def configured(machine: str, file: str, attributes: Iterable[str], columns: Mapping[str, int]) -> str:
    """`columns`: with their directions. Printable text as JSON is YAML too."""
    lines = [
        "tests:",
        f"  {_quoted(f'kvbench on {machine}')}:",
        "    type: csv",
        f"    file: {file}",
        "    time_column: time",
        f"    attributes: [{', '.join(attributes)}]",
        "    metrics:" if columns else "    metrics: {}",
    ]
    for name, direction in ((_quoted(column), direction) for column, direction in columns.items()):
        lines += [f"      {name}:", f"        column: {name}", f"        direction: {direction}"]
    return "\n".join(lines) + "\n"


def _metrics(comparison: Comparison) -> Iterator[_Metric]:
    for one in sorted(comparison.points, key=lambda point: point.name):  # the same columns whatever was worst
        if one.head_gbps is not None:
            yield _Metric(cell(f"{one.name} bytes_per_second"), 1, one.head_gbps * GB)
        if one.head_seconds is not None:
            yield _Metric(cell(f"{one.name} seconds"), -1, one.head_seconds)


def _attributes(comparison: Comparison) -> dict[str, str]:
    """A gate's head is a revision, that of other comparisons a run."""
    head = "commit" if comparison.command == "gate" else "run_id"
    return {head: comparison.head, "base": comparison.base, "verdict": comparison.verdict}


def timed(created: str) -> str:
    time = moment(created)
    return time.isoformat(timespec="seconds") if time else created


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
