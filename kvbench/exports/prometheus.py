"""Gauges for node_exporter's textfile collector, which takes no timestamps."""

from collections.abc import Iterator

from kvbench.exports.sound import moment
from kvbench.exports.wording import by_verdict
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import WORDS
from kvbench.units import GB

_MOST = 500  # series in all
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_ABOUT = {
    "kvbench_comparison_verdict": "1 for the verdict of the last comparison, 0 for the other words.",
    "kvbench_comparison_points": "Points by verdict.",
    "kvbench_comparison_missing_points": "Points that could not be compared.",
    "kvbench_comparison_timestamp_seconds": "When the last comparison was made.",
    "kvbench_comparison_points_left_out": "Points without series of their own, for there are too many.",
    "kvbench_family_slowdown_ratio": "Share of base's time by which head takes longer, of a family of points.",
    "kvbench_slowdown_ratio": "Share of base's time by which head takes longer.",
    "kvbench_pass_seconds": "Time of a step, of head.",
    "kvbench_bandwidth_bytes_per_second": "Compulsory bytes of a step over its time, of head.",
}
_Sample = tuple[str, dict[str, str], float]  # metric, labels, value


def prometheus(comparison: Comparison) -> str:
    found = list(_series(comparison))
    return "".join(f"{line}\n" for metric in _ABOUT for line in _lines(metric, comparison, found))


def _lines(metric: str, comparison: Comparison, found: list[_Sample]) -> Iterator[str]:
    of_metric = [(labels, value) for name, labels, value in found if name == metric]
    if of_metric:
        yield from (f"# HELP {metric} {_ABOUT[metric]}", f"# TYPE {metric} gauge")
    for labels, value in of_metric:
        every = {"command": comparison.command, "machine": comparison.machine} | labels
        text = ",".join(f'{name}="{label.translate(_ESCAPES)}"' for name, label in every.items())
        yield f"{metric}{{{text}}} {value!r}"


def _series(comparison: Comparison) -> Iterator[_Sample]:
    """The points with the worst news first, until there are enough: a rule that watches for slowdowns then sees them."""
    whole = list(_whole(comparison))
    yield from whole
    left, shown = _MOST - len(whole) - 1, 0
    for family in comparison.families[: left // 2]:
        if family.effect is not None:
            yield "kvbench_family_slowdown_ratio", {"family": family.name}, family.effect
            left -= 1
    for point in comparison.points:
        series = list(_point(point))
        if len(series) > left:
            break
        yield from series
        left, shown = left - len(series), shown + 1
    yield "kvbench_comparison_points_left_out", {}, float(len(comparison.points) - shown)


def _whole(comparison: Comparison) -> Iterator[_Sample]:
    numbers = by_verdict(comparison.points)
    for word in WORDS:
        yield "kvbench_comparison_verdict", {"verdict": word}, float(word == comparison.verdict)
        yield "kvbench_comparison_points", {"verdict": word}, float(numbers[word])
    yield "kvbench_comparison_missing_points", {}, float(len(comparison.missing))
    if time := moment(comparison.created):
        yield "kvbench_comparison_timestamp_seconds", {}, time.timestamp()


def _point(point: Judged) -> Iterator[_Sample]:
    labels = {"family": point.family, "point": point.name}
    if point.effect is not None:
        yield "kvbench_slowdown_ratio", labels, point.effect
    if point.head_seconds is not None:
        yield "kvbench_pass_seconds", labels, point.head_seconds
    if point.head_gbps is not None:
        yield "kvbench_bandwidth_bytes_per_second", labels, point.head_gbps * GB
