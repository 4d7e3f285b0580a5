"""A history as lines of text, as JSON, and as the tables of its page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kvbench.analysis.trend import ACCEPTED, LIMITS, OPEN, Past, Step, Trend
from kvbench.report.lines import wrapped
from kvbench.report.tables import Cell, Table
from kvbench.units import counted, cut

_NAME = 58  # characters of a name, at most
_NOTES = 5  # that are told
_DAY = 10  # characters of a date

HOW = (
    "Efficiency is GB/s of a point as a percentage of its witness's in the same rounds: of a decode the same reads "
    "alone, of a store a copy. The latest run is held against the baseline: the runs since the last accepted step, up "
    f"to the first open one. A step is a lasting change by {LIMITS.effect:.0%} of the efficiency or more, at a "
    f"false-discovery rate of {LIMITS.rate:.0%} over all points; its interval holds it with a probability of 95%."
)


def ordered(past: Past) -> list[Trend]:
    """What needs somebody's attention first."""
    return sorted(past.trends, key=lambda trend: (trend.worst(), not trend.open(), not trend.steps, trend.series.point))


# ---- lines -----------------------------------------------------------------------------------------------------------


def text(pasts: Sequence[Past], notes: Sequence[str]) -> list[str]:
    lines = [line for past in pasts for line in (*_machine(past), "")]
    said = [HOW] if lines else ["No run yet: kvbench history add RUN..."]
    return [*lines, *wrapped([*said, *few(notes)], "")]


def few(notes: Sequence[str]) -> list[str]:
    left = len(notes) - _NOTES
    return [*notes[:_NOTES], *([f"and {left} more: --json"] if left > 0 else [])]


def _machine(past: Past) -> Iterator[str]:
    yield f"{past.machine} (fingerprint {past.fingerprint}): {summary(past)}"
    said = {trend.series.point: cut(past.names[trend.series.point], _NAME) for trend in past.trends}
    width = max(map(len, said.values()), default=0)
    yield ""
    yield f"  {'point':<{width}}  {'runs':>5}  {'latest':>7}  {'baseline':>8}  {'change':>7}"
    for trend in ordered(past):
        numbers = f"{len(trend.series.runs):>5}  {trend.latest:>7.1%}  {trend.level:>8.1%}  {trend.change:>+7.1%}"
        yield f"  {said[trend.series.point]:<{width}}  {numbers}{'  too few runs' if trend.few else ''}"
        yield from (f"    {state(past, trend, step)}" for step in trend.steps)


def summary(past: Past) -> str:
    steps = [step for trend in past.trends for step in trend.open()]
    down = sum(step.effect < 0 for step in steps)
    days = f", {past.runs[0].created[:_DAY]} to {past.runs[-1].created[:_DAY]}" if past.runs else ""
    found = f"{counted(len(past.runs), 'run')} of {counted(len(past.trends), 'point')}{days}"
    said = f"{counted(len(steps), 'open step')}, {down} of them down" if steps else "no open step"
    accepted = sum(step.state == ACCEPTED for trend in past.trends for step in trend.steps)
    return f"{found}: {said}{f', {accepted} accepted' if accepted else ''}"


def state(past: Past, trend: Trend, step: Step) -> str:
    """ "open −5.1% (−5.9 to −4.3) since run X, 2026-11-21; between it and the run before the build changed"."""
    ran = past.runs[step.run]
    found = f"{step.state} {100 * step.effect:+.1f}%{_around(step)} since run {ran.run}, {ran.created[:_DAY]}"
    changed = past.beside(trend, step)
    return f"{found}; with it the {' and the '.join(changed)} changed" if changed else found


def _around(step: Step) -> str:
    return "" if step.low is None or step.high is None else f" ({100 * step.low:+.1f} to {100 * step.high:+.1f})"


# ---- JSON ------------------------------------------------------------------------------------------------------------


def plain(root: str, pasts: Sequence[Past], notes: Sequence[str]) -> dict[str, Any]:
    """Keys are part of the interface."""
    return {"version": 1, "root": root, "machines": [_plain(past) for past in pasts], "notes": list(notes)}


def _plain(past: Past) -> dict[str, Any]:
    points = [
        {
            "point": trend.series.point,
            "short": past.names[trend.series.point],
            "runs": len(trend.series.runs),
            "latest": trend.latest,
            "baseline": trend.level,
            "baseline_from": past.runs[trend.baseline[0]].run,
            "baseline_to": past.runs[trend.baseline[1]].run,
            "change": trend.change,
            "few": trend.few,
            "steps": [_step(past, trend, step) for step in trend.steps],
        }
        for trend in ordered(past)
    ]
    runs = [asdict(ran) for ran in past.runs]
    return {"fingerprint": past.fingerprint, "machine": past.machine, "runs": runs, "points": points}


def _step(past: Past, trend: Trend, step: Step) -> dict[str, Any]:
    ran = past.runs[step.run]
    facts = {name: getattr(step, name) for name in ("state", "effect", "low", "high", "q")}
    return facts | {"run": ran.run, "created": ran.created, "changed": list(past.beside(trend, step))}


# ---- tables ----------------------------------------------------------------------------------------------------------


def points(pasts: Sequence[Past]) -> Table:
    """In the order of the machines, then of their trends: the number of a row is that of its marks."""
    every = [(past, trend) for past in pasts for trend in past.trends]
    heads = ("point", "machine", "runs", "latest", "baseline", "change", "baseline since", "steps")
    shown = [place for place, head in enumerate(heads) if head != "machine" or len(pasts) > 1]
    rows = [_row(past, trend) for past, trend in every]
    order = sorted(range(len(every)), key=lambda place: (every[place][1].worst(), not every[place][1].steps))
    return Table(
        "points",
        "All points",
        HOW,
        tuple(heads[place] for place in shown),
        tuple(tuple(rows[number][place] for place in shown) for number in order),
        tuple(order),
        tuple(_facts(every[number][1]) for number in order),
    )


def _row(past: Past, trend: Trend) -> tuple[Cell, ...]:
    first = past.runs[trend.baseline[0]]
    said = "too few runs" if trend.few else "; ".join(state(past, trend, step) for step in trend.steps)
    return (
        _cell(past.names[trend.series.point]),
        _cell(past.machine),
        Cell(str(len(trend.series.runs)), len(trend.series.runs)),
        *(Cell(f"{share:.1%}", share) for share in (trend.latest, trend.level)),
        Cell(f"{trend.change:+.1%}", trend.change),
        _cell(f"{first.created[:_DAY]} {first.run}"),
        _cell(said),
    )


def _facts(trend: Trend) -> dict[str, str]:
    """Words to filter by, of the point's kernel; and of its steps."""
    op, _, layout, dtype, _ = trend.series.point.partition("/")[0].split(".")
    states = {step.state for step in trend.steps}
    return {
        "op": op,
        "layout": layout,
        "dtype": dtype,
        "steps": next((s for s in (OPEN, ACCEPTED) if s in states), "none"),
    }


def steps(pasts: Sequence[Past]) -> Table:
    """Those that lead down first, each with what else changed."""
    found = [(past, trend, step) for past in pasts for trend in past.trends for step in trend.steps]
    found.sort(key=lambda each: (each[2].state != OPEN, each[2].effect))
    rows = tuple(
        (
            _cell(step.state),
            Cell(f"{100 * step.effect:+.1f}%", step.effect),
            _cell(_around(step).strip(" ()")),
            _cell(past.names[trend.series.point]),
            _cell(past.runs[step.run].created[:_DAY]),
            _cell(past.runs[step.run].run),
            _cell(", ".join(past.beside(trend, step))),
        )
        for past, trend, step in found
    )
    heads = ("state", "step", "interval", "point", "date", "first run after it", "changed with it")
    about = (
        "By how much the efficiency changed for good, as a share of what it was before. The run may be off by one; by a "
        "few where noise is as large as the step. kvbench history accept POINT --run RUN --reason TEXT accepts one."
    )
    return Table("steps", "Steps", about, heads, rows, (None,) * len(rows), ({},) * len(rows))


def accepted(pasts: Sequence[Past]) -> Table:
    found = [(past, each) for past in pasts for each in past.accepted]
    rows = tuple(
        tuple(
            map(
                _cell,
                (
                    each.run,
                    each.reason,
                    each.who,
                    each.when,
                    ", ".join(past.names.get(name, name) for name in each.points),
                ),
            )
        )
        for past, each in found
    )
    heads = ("from run", "reason", "who", "when", "points")
    about = "Steps that somebody accepted: from these runs on, these points are held against what follows."
    return Table("accepted", "What was accepted", about, heads, rows, (None,) * len(rows), ({},) * len(rows))


def runs(pasts: Sequence[Past]) -> Table:
    found = [(past, ran) for past in pasts for ran in reversed(past.runs)]
    rows = tuple(
        tuple(map(_cell, (ran.created, ran.run, past.machine, past.fingerprint, ran.suite, ran.build, ran.environment)))
        for past, ran in found
    )
    heads = ("created", "run", "machine", "fingerprint", "suite", "build", "environment")
    about = "The latest first. Builds and environments are digests: where one differs from the line below, it changed."
    return Table("runs", "Runs", about, heads, rows, (None,) * len(rows), ({},) * len(rows))


def _cell(text: str) -> Cell:
    return Cell(text, text)
