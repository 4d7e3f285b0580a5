"""A history as lines of text, and as the tables of its page."""

from collections.abc import Iterable, Iterator, Sequence

from kvbench.analysis.differs.trend import ACCEPTED, LIMITS, OPEN, Past, Step, Trend
from kvbench.report.sheet import Cell, Sheet, plain, sheet
from kvbench.texts import wrapped
from kvbench.units import counted, cut

_NAME = 58  # characters of a name, at most
_NOTES = 5  # that are told
_DAY = 10  # characters of a date
_COMMIT = 7  # and of a commit

_Row = dict[str, Cell | str]  # by its head
_Facts = dict[str, str]  # words to filter by

HOW = (
    "Efficiency: the rate of a point as % of the rate of its witness in the same rounds (of a decode a read of the same "
    "rows, of a store a copy). Baseline: the median of the runs since the last accepted step, up to the first open one. "
    "Family: the median of a kernel's points, each as a share of its own usual efficiency. "
    f"Step: a lasting change of {LIMITS.effect:.0%} of a point's efficiency or more, of {LIMITS.family:.0%} of a family's, "
    f"at a false-discovery rate of {LIMITS.rate:.0%} over all points, and over all families; its interval holds it with a "
    "probability of 95%."
)


def ordered(trends: Iterable[Trend]) -> list[Trend]:
    """What needs somebody's attention first."""
    return sorted(trends, key=lambda trend: (trend.worst(), not trend.open(), not trend.steps, trend.series.point))


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
    for level, trends in (("family", past.families), ("point", past.trends)):
        if trends:
            yield ""
            yield from _lines(past, level, ordered(trends))


def _lines(past: Past, level: str, trends: Sequence[Trend]) -> Iterator[str]:
    said = [cut(past.names[trend.series.point], _NAME) for trend in trends]
    width = max(map(len, [level, *said]))
    yield f"  {level:<{width}}  {'runs':>5}  {'latest':>7}  {'baseline':>8}  {'change':>7}"
    for name, trend in zip(said, trends, strict=True):
        numbers = f"{len(trend.series.runs):>5}  {trend.latest:>7.1%}  {trend.level:>8.1%}  {trend.change:>+7.1%}"
        yield f"  {name:<{width}}  {numbers}{f'  {few_runs(trend)}' if trend.few else ''}"
        yield from (f"    {state(past, trend, step)}" for step in trend.steps)


def few_runs(trend: Trend) -> str:
    return f"too few runs: a step shows after {trend.needs} more" if trend.few else ""


def summary(past: Past) -> str:
    steps = [step for trend in past.every for step in trend.open()]
    down = sum(step.effect < 0 for step in steps)
    days = f", {past.runs[0].created[:_DAY]} to {past.runs[-1].created[:_DAY]}" if past.runs else ""
    found = f"{counted(len(past.runs), 'run')} of {counted(len(past.trends), 'point')}{days}"
    said = f"{counted(len(steps), 'open step')}, {down} of them down" if steps else "no open step"
    accepted = sum(step.state == ACCEPTED for trend in past.every for step in trend.steps)
    few = [trend.needs for trend in past.families if trend.few]
    more = f"; of {counted(len(few), 'family')} a step shows after {max(few)} more runs at the latest" if few else ""
    return f"{found}: {said}{f', {accepted} accepted' if accepted else ''}{more}"


def state(past: Past, trend: Trend, step: Step) -> str:
    """ "open −5.1% (−5.9 to −4.3) since run X, 2026-11-21, commit 3f2a91c Round tiles (main): git log 1b2c3d4..3f2a91c;
    with it the build changed"."""
    ran = past.runs[step.run]
    found = f"{step.state} {100 * step.effect:+.1f}%{_around(step)} since run {ran.run}, {ran.created[:_DAY]}"
    if ran.commit:
        branch, between = f" ({ran.branch})" if ran.branch else "", commits(past, trend, step)
        found += f", commit {ran.commit[:_COMMIT]} {cut(ran.message, _NAME)}{branch}: git log {between}"
    changed = past.beside(trend, step)
    return f"{found}; with it the {' and the '.join(changed)} changed" if changed else found


def commits(past: Past, trend: Trend, step: Step) -> str:
    """That came between the run before a step and the first one after it, as git names them."""
    before, after = past.before(trend, step), past.runs[step.run]
    ends = [ran.commit[:_COMMIT] for ran in (before, after) if ran and ran.commit]
    return "..".join(dict.fromkeys(ends)) if after.commit else ""


def _around(step: Step) -> str:
    return "" if step.low is None or step.high is None else f" ({100 * step.low:+.1f} to {100 * step.high:+.1f})"


# ---- tables ----------------------------------------------------------------------------------------------------------


def points(pasts: Sequence[Past]) -> Sheet:
    """What needs attention first. Places are those of the trends, in the order of the machines: marks have them, too."""
    every = [(past, trend) for past in pasts for trend in past.trends]
    order = sorted(range(len(every)), key=lambda place: (every[place][1].worst(), not every[place][1].steps))
    rows = [_row(*every[place], several=len(pasts) > 1) for place in order]
    return _table("points", "All points", HOW, rows, order, [_facts(*every[place]) for place in order])


def _row(past: Past, trend: Trend, several: bool) -> _Row:
    first, runs = past.runs[trend.baseline[0]], len(trend.series.runs)
    return {
        "point": past.names[trend.series.point],
        **({"machine": past.machine} if several else {}),
        "runs": Cell(str(runs), runs),
        "latest": Cell(f"{trend.latest:.1%}", trend.latest),
        "baseline": Cell(f"{trend.level:.1%}", trend.level),
        "change": Cell(f"{trend.change:+.1%}", trend.change),
        "baseline since": f"{first.created[:_DAY]} {first.run}",
        "steps": few_runs(trend) or "; ".join(state(past, trend, step) for step in trend.steps),
    }


def _facts(past: Past, trend: Trend) -> dict[str, str]:
    """Words to filter by, of the point; and of its steps."""
    point, states = past.points[trend.series.point], {step.state for step in trend.steps}
    own = {name: getattr(point, name) for name in ("op", "layout", "dtype")}
    return own | {"steps": next((state for state in (OPEN, ACCEPTED) if state in states), "none")}


def steps(pasts: Sequence[Past]) -> Sheet:
    """Those that lead down first, each with what else changed."""
    found = [(past, trend, step) for past in pasts for trend in past.every for step in trend.steps]
    rows = [
        {
            "state": step.state,
            "step": Cell(f"{100 * step.effect:+.1f}%", step.effect),
            "interval": _around(step).strip(" ()"),
            "family or point": past.names[trend.series.point],
            "date": past.runs[step.run].created[:_DAY],
            "commits": commits(past, trend, step),
            "message": past.runs[step.run].message,
            "first run after it": past.runs[step.run].run,
            "changed with it": ", ".join(past.beside(trend, step)),
        }
        for past, trend, step in sorted(found, key=lambda each: (each[2].state != OPEN, each[2].effect))
    ]
    about = (
        "A lasting change, as a share of the efficiency before. The run may be off by one, or by a few where noise is as "
        "large as the step. To accept one: kvbench history accept POINT --run RUN --reason TEXT."
    )
    return _table("steps", "Steps", about, rows)


def accepted(pasts: Sequence[Past]) -> Sheet:
    rows = [
        {"from run": each.run, "reason": each.reason, "who": each.who, "when": each.when}
        | {"points": ", ".join(past.names.get(name, name) for name in each.points)}
        for past in pasts
        for each in past.accepted
    ]
    about = "Accepted steps: from these runs on, later runs are compared with what follows."
    return _table("accepted", "What was accepted", about, rows)


def runs(pasts: Sequence[Past]) -> Sheet:
    rows = [
        {"created": ran.created, "run": ran.run, "machine": past.machine, "fingerprint": past.fingerprint}
        | {name: getattr(ran, name) for name in ("suite", "build", "environment", "commit", "branch", "message")}
        for past in pasts
        for ran in reversed(past.runs)
    ]
    about = "The latest first. Build and environment are digests: where one differs from the line below, it changed."
    return _table("runs", "Runs", about, rows)


def _table(
    name: str, title: str, about: str, rows: Sequence[_Row], places: Sequence[int] = (), facts: Sequence[_Facts] = ()
) -> Sheet:
    """All rows have the same keys."""
    return sheet(name, title, about, plain(*(rows[0] if rows else ())), rows, places, facts)
