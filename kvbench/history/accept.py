"""To accept a step: it was meant, or cannot be helped, and from there on the point is held against what follows."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kvbench.analysis.trend import Accepted, Past, Step, Trend
from kvbench.errors import BadArgument
from kvbench.history.accepted import add
from kvbench.history.whole import History, named
from kvbench.units import now

_NEAR = 1  # runs by which the step's own may differ: noise leaves that open
_TOLD = 4  # steps that a hint names


def accept(history: History, pattern: str, run: str, reason: str, who: str) -> tuple[Accepted, ...]:
    """The open steps at this run, or next to it, of the points that the pattern names."""
    past, place = _run(history, run)
    trends = [trend for trend in past.trends if named(past, trend, pattern)]
    if not trends:
        hint = "patterns are as of a shell, such as 'decode.*.i8.*'; kvbench history show lists the points"
        raise BadArgument(f"no point of these runs is named {pattern!r}", hint)
    points: dict[int, list[str]] = {}
    for trend, step in _open(trends):
        if abs(trend.series.runs.index(step.run) - _index(trend, place)) <= _NEAR:
            points.setdefault(step.run, []).append(trend.series.point)
    if not points:
        raise BadArgument(f"no point named {pattern!r} has an open step at run {run}", _others(past, trends))
    when = now()
    found = tuple(Accepted(past.runs[at].run, tuple(own), reason, who, when) for at, own in sorted(points.items()))
    add(history.root, found)
    return found


def _run(history: History, run: str) -> tuple[Past, int]:
    """By its name, or by that of its folder."""
    for past in history.pasts:
        for place, ran in enumerate(past.runs):
            if run.rstrip("/") in (ran.run, ran.path, Path(ran.path).name, str(history.root / ran.path)):
                return past, place
    latest = [past.runs[-1].run for past in history.pasts]
    hint = f"the latest is {', '.join(latest)}" if latest else "there are no runs: kvbench history add"
    raise BadArgument(f"--run: there is no run {run!r} below {history.root}", hint)


def _index(trend: Trend, run: int) -> int:
    """Where a run is among those of the point: after all that came before it."""
    return sum(own < run for own in trend.series.runs)


def _open(trends: list[Trend]) -> Iterator[tuple[Trend, Step]]:
    for trend in trends:
        for step in trend.open():
            yield trend, step


def _others(past: Past, trends: list[Trend]) -> str:
    counts = Counter(step.run for _, step in _open(trends))
    told = ", ".join(f"{past.runs[run].run} ({count})" for run, count in sorted(counts.items())[-_TOLD:])
    return f"their open steps are at {told}" if told else "they have no open step"
