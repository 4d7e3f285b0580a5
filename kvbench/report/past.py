"""A history as JSON: what kvbench history show --json prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.differs.trend import ACCEPTED, OPEN, Past, Ran, Step, Trend
from kvbench.model.annotated import Printed, about
from kvbench.report.history import commits, ordered


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of a point's efficiency."""

    state: Annotated[str, about("accepted: by somebody, as right", OPEN, ACCEPTED)]
    effect: Annotated[float, about("share of the efficiency before: by which it changed")]
    low: Annotated[float | None, about("share of that: the 95 % interval begins; null where runs are too few")]
    high: Annotated[float | None, about("share of that: the 95 % interval ends; null where runs are too few")]
    q: Annotated[float | None, about("probability: of such a step by chance at any point; null if accepted")]
    run: Annotated[str, about("the first one after it")]
    created: Annotated[str, about("when that began, ISO 8601")]
    commits: Annotated[str, about("that came with it, as git log takes them; empty if unknown")]
    changed: Annotated[tuple[str, ...], about("what else changed there: build, environment, schedule")]


@dataclass(frozen=True, slots=True)
class PointTrend:
    """A point over its runs. Efficiency is its rate as a share of its witness's."""

    point: Annotated[str, about("its name")]
    short: Annotated[str, about("its name for people")]
    runs: Annotated[int, about("that have it")]
    latest: Annotated[float, about("share of the witness's rate: efficiency of the latest run")]
    baseline: Annotated[float, about("share of the witness's rate: median of the runs it is held against")]
    baseline_from: Annotated[str, about("the first of these runs")]
    baseline_to: Annotated[str, about("the last of these runs")]
    change: Annotated[float, about("share of the baseline: by which the latest run is above it")]
    few: Annotated[bool, about("whether there are too few runs for a step to be seen")]
    needs: Annotated[int, about("further runs, at least, before a step can be seen")]
    steps: Annotated[tuple[Change, ...], about("changes for good, in the order of time")]


@dataclass(frozen=True, slots=True)
class MachineHistory:
    """The runs of one machine."""

    fingerprint: Annotated[str, about("digest of the hardware")]
    machine: Annotated[str, about("its name")]
    runs: Annotated[tuple[Ran, ...], about("in the order of time")]
    points: Annotated[tuple[PointTrend, ...], about("what needs attention first")]
    families: Annotated[tuple[PointTrend, ...], about("of kernels, likewise: medians of their points")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Printed):
    """The histories of all machines."""

    root: Annotated[str, about("the folder that holds the runs")]
    machines: Annotated[tuple[MachineHistory, ...], about("most runs first")]
    notes: Annotated[tuple[str, ...], about("what was left out, and why")]


def shown(root: str, pasts: Sequence[Past], notes: Sequence[str]) -> Shown:
    return Shown(root=root, machines=tuple(map(_machine, pasts)), notes=tuple(notes))


def _machine(past: Past) -> MachineHistory:
    points, families = (tuple(_trend(past, trend) for trend in ordered(each)) for each in (past.trends, past.families))
    return MachineHistory(past.fingerprint, past.machine, tuple(past.runs), points, families)


def _trend(past: Past, trend: Trend) -> PointTrend:
    first, last = (past.runs[place].run for place in trend.baseline)
    return PointTrend(
        point=trend.series.point,
        short=past.names[trend.series.point],
        runs=len(trend.series.runs),
        latest=trend.latest,
        baseline=trend.level,
        baseline_from=first,
        baseline_to=last,
        change=trend.change,
        few=trend.few,
        needs=trend.needs,
        steps=tuple(_change(past, trend, step) for step in trend.steps),
    )


def _change(past: Past, trend: Trend, step: Step) -> Change:
    ran, changed = past.runs[step.run], tuple(past.beside(trend, step))
    found = step.state, step.effect, step.low, step.high, step.q, ran.run, ran.created
    return Change(*found, commits(past, trend, step), changed)
