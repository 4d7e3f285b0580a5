"""A history as JSON (kvbench history show --json), as lines of text, and as tables of its page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from kvbench.analysis.differs.trend import ACCEPTED, LIMITS, OPEN, Past, Ran, Step, Trend
from kvbench.analysis.shown.trend import ordered
from kvbench.model.annotated import Printed, about
from kvbench.report.sheet import Cell, Columns, Sheet, plain, sheet
from kvbench.texts import wrapped
from kvbench.units import counted, cut

_NAME = 58  # characters of a name, at most
_NOTES = 5  # notes that are shown
_DAY, _COMMIT = 10, 7  # characters of a date, and of a commit

HOW = (
    "Efficiency: the rate of a point as % of the rate of its witness in the same rounds (for a"
    " decode, a read of the same rows; for a store, a copy; for a step, a plain read of memory)."
    " Baseline: the median of the runs since the last accepted step, up to the first open step."
    " Family: the median of a kernel's points, each as a share of its own usual efficiency. Step: a"
    f" lasting change of {LIMITS.effect:.0%} of a point's efficiency or more, or of"
    f" {LIMITS.family:.0%} of a family's, at a false-discovery rate of {LIMITS.rate:.0%} over all"
    " points, and over all families. Its interval holds it with a probability of 95%."
)
ORDER = (
    "Order of the rows: open steps down, the largest first; then other open steps; then accepted"
    " steps; then points by the change of their latest run."
)
_WITHOUT_ROWS = "--json and --report show the numbers of points without a row."
_STEPS = (
    "A lasting change, as a share of the efficiency before it. The run may be off by one, or by a"
    " few if noise is as large as the step. To accept a step: kvbench history accept POINT --run"
    " RUN --reason TEXT."
)


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of a point's efficiency."""

    state: Annotated[str, about("accepted: a person has said that it is right", OPEN, ACCEPTED)]
    effect: Annotated[float, about("share of the efficiency before: size of the change")]
    low: Annotated[
        float | None, about("share of that: low end of the 95 % interval; null if runs are too few")
    ]
    high: Annotated[
        float | None,
        about("share of that: high end of the 95 % interval; null if runs are too few"),
    ]
    q: Annotated[
        float | None, about("probability: of such a step by chance at any point; null if accepted")
    ]
    run: Annotated[str, about("the first run after the step")]
    created: Annotated[str, about("when that run began, ISO 8601")]
    commits: Annotated[str, about("range of commits for git log; empty if unknown")]
    changed: Annotated[
        tuple[str, ...], about("what else changed at that run: build, environment, schedule")
    ]


@dataclass(frozen=True, slots=True)
class PointTrend:
    """A point over its runs. Efficiency is its rate as a share of its witness's."""

    point: Annotated[str, about("name of the point")]
    short: Annotated[str, about("short name, for people")]
    runs: Annotated[int, about("number of runs with this point")]
    latest: Annotated[float, about("share of the witness's rate: efficiency of the latest run")]
    baseline: Annotated[
        float, about("share of the witness's rate: median of the runs of the baseline")
    ]
    baseline_from: Annotated[str, about("the first run of the baseline")]
    baseline_to: Annotated[str, about("the last run of the baseline")]
    change: Annotated[float, about("share of the baseline: how far the latest run is above it")]
    few: Annotated[bool, about("there are too few runs to find a step")]
    needs: Annotated[int, about("number of further runs, at least, before a step can be found")]
    steps: Annotated[tuple[Change, ...], about("lasting changes, in the order of time")]


@dataclass(frozen=True, slots=True)
class MachineHistory:
    """The runs of one machine."""

    fingerprint: Annotated[str, about("digest of the hardware")]
    machine: Annotated[str, about("name of the machine")]
    runs: Annotated[tuple[Ran, ...], about("the runs, in the order of time")]
    points: Annotated[
        tuple[PointTrend, ...], about("the points; those that need attention are first")
    ]
    families: Annotated[
        tuple[PointTrend, ...], about("families of kernels: medians of their points")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Printed):
    """The histories of all machines."""

    root: Annotated[str, about("folder with the runs")]
    machines: Annotated[tuple[MachineHistory, ...], about("the machines, most runs first")]
    notes: Annotated[tuple[str, ...], about("what was left out, and why")]


def shown(root: str, pasts: Sequence[Past], notes: Sequence[str]) -> Shown:
    return Shown(root=root, machines=tuple(map(of, pasts)), notes=tuple(notes))


def of(past: Past) -> MachineHistory:
    points, families = (
        tuple(_trend(past, trend) for trend in ordered(each))
        for each in (past.trends, past.families)
    )
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
    before, after = past.before(trend, step), past.runs[step.run]
    ends = [ran.commit[:_COMMIT] for ran in (before, after) if ran and ran.commit]
    commits = "..".join(dict.fromkeys(ends)) if after.commit else ""
    found = step.state, step.effect, step.low, step.high, step.q, after.run, after.created, commits
    return Change(*found, tuple(past.beside(trend, step)))


def text(pasts: Sequence[Past], notes: Sequence[str]) -> list[str]:
    lines = [line for past in pasts for line in (*_machine(of(past)), "")]
    every = [trend for past in pasts for trend in past.every]
    said = [] if lines else ["No run yet: kvbench history add RUN..."]
    said += [HOW, ORDER] if any(map(_told, every)) else []
    said += [_WITHOUT_ROWS] if not all(map(_told, every)) else []
    return [*lines, *wrapped([*said, *few(notes)], "")]


def few(notes: Sequence[str]) -> list[str]:
    left = len(notes) - _NOTES
    return [*notes[:_NOTES], *([f"and {left} more: --json"] if left > 0 else [])]


def _machine(found: MachineHistory) -> Iterator[str]:
    runs = {ran.run: ran for ran in found.runs}
    yield f"{found.machine} (fingerprint {found.fingerprint}): {summary(found, waiting=False)}"
    for level, trends in (("family", found.families), ("point", found.points)):
        yield from _level(level, trends, runs)


def _level(level: str, trends: Sequence[PointTrend], runs: Mapping[str, Ran]) -> Iterator[str]:
    """A row for each point or family of which something is known; one line for all others."""
    told, few = (
        [trend for trend in trends if _told(trend)],
        [trend for trend in trends if trend.few],
    )
    if few:
        yield from ("", *wrapped([_all_too_few(level, few, trends)]))
    if not told:
        return
    width = max(len(cut(trend.short, _NAME)) for trend in told)
    yield from (
        "",
        f"  {level:<{width}}  {'runs':>5}  {'latest':>7}  {'baseline':>8}  {'change':>7}",
    )
    for trend in told:
        numbers = (
            f"{trend.runs:>5}  {trend.latest:>7.1%}  {trend.baseline:>8.1%}  {trend.change:>+7.1%}"
        )
        yield f"  {cut(trend.short, _NAME):<{width}}  {numbers}  {_too_few(trend)}".rstrip()
        yield from (f"    {_state(step, runs[step.run])}" for step in trend.steps)


def _told(trend: PointTrend | Trend) -> bool:
    """True if the point gets a row: it has steps, or enough runs to find one."""
    return bool(trend.steps) or not trend.few


def _all_too_few(level: str, few: Sequence[PointTrend], every: Sequence[PointTrend]) -> str:
    """How many points have too few runs to find a step, and how many runs are lacking."""
    needs, runs = ({getattr(trend, name) for trend in few} for name in ("needs", "runs"))
    noun = counted(len(every), level).partition(" ")[2]
    have = counted(max(runs), "run") if len(runs) == 1 else f"{min(runs)} to {max(runs)} runs"
    more = f"{max(needs)}" if len(needs) == 1 else f"{min(needs)} to {max(needs)}"
    said = (
        f"{len(few)} of {len(every)} {noun} {'has' if len(few) == 1 else 'have'} too few runs to"
        " find a step"
    )
    return f"{said}: {have}, and {more} more {'is' if more == '1' else 'are'} needed."


def _too_few(trend: PointTrend) -> str:
    return f"too few runs: a step can be found after {trend.needs} more" if trend.few else ""


def summary(found: MachineHistory, waiting: bool = True) -> str:
    """Sum up a history. `waiting`: whether to count families with too few runs."""
    every = [step for trend in (*found.families, *found.points) for step in trend.steps]
    steps = [step for step in every if step.state == OPEN]
    days = (
        f", {found.runs[0].created[:_DAY]} to {found.runs[-1].created[:_DAY]}" if found.runs else ""
    )
    down = sum(step.effect < 0 for step in steps)
    said = f"{counted(len(steps), 'open step')}, {down} of them down" if steps else "no open step"
    said += f", {len(every) - len(steps)} accepted" if len(every) > len(steps) else ""
    few = [trend.needs for trend in found.families if trend.few and waiting]
    more = (
        f"; in {counted(len(few), 'family')} a step can be found after at most {max(few)} more runs"
        if few
        else ""
    )
    return (
        f"{counted(len(found.runs), 'run')} of {counted(len(found.points), 'point')}{days}:"
        f" {said}{more}"
    )


def _state(step: Change, ran: Ran) -> str:
    """A step in words: its state and effect, the run and commit where it begins, and what else
    changed, such as the build.
    """
    found = f"{_effect(step)}{_around(step)} since run {step.run}, {step.created[:_DAY]}"
    if ran.commit:
        branch = f" ({ran.branch})" if ran.branch else ""
        found += (
            f", commit {ran.commit[:_COMMIT]} {cut(ran.message, _NAME)}{branch}: git log"
            f" {step.commits}"
        )
    return (
        f"{found}; with it the {' and the '.join(step.changed)} changed" if step.changed else found
    )


def _effect(step: Change) -> str:
    return f"{step.state} {100 * step.effect:+.1f}%"


def _around(step: Change) -> str:
    return (
        ""
        if step.low is None or step.high is None
        else f" ({100 * step.low:+.1f} to {100 * step.high:+.1f})"
    )


def points(pasts: Sequence[Past], places: Mapping[str, int]) -> Sheet:
    """The table of points; those that need attention are first. `places`: numbers of the marks in a
    figure, by fingerprint and point.
    """
    found = [(past, trend) for past in pasts for trend in of(past).points]
    rows = [
        asdict(trend)
        | {
            "machine": past.machine,
            "said": _too_few(trend) or "; ".join(map(_effect, trend.steps)),
        }
        for past, trend in found
    ]
    columns: Columns = {
        "point": ("short", str),
        **(plain("machine") if len(pasts) > 1 else {}),
        **plain("runs"),
        "latest": ("latest", "{:.1%}".format),
        "baseline": ("baseline", "{:.1%}".format),
        "change": ("change", "{:+.1%}".format),
        "baseline since": ("baseline_from", str),
        "steps": ("said", str),
    }
    marks = [places[past.fingerprint + trend.point] for past, trend in found]
    return sheet("points", "All points", f"{HOW} {ORDER}", columns, rows, marks)


def steps(pasts: Sequence[Past]) -> Sheet:
    """The table of steps: steps down first, each with what else changed."""
    rows = [
        asdict(step)
        | {
            "name": trend.short,
            "step": Cell(f"{100 * step.effect:+.1f}%", step.effect),
            "date": step.created[:_DAY],
        }
        | {
            "interval": _around(step).strip(" ()"),
            "message": ran.message,
            "beside": ", ".join(step.changed),
        }
        for past in pasts
        for machine in [of(past)]
        for trend in (*machine.families, *machine.points)
        for step in trend.steps
        for ran in past.runs
        if ran.run == step.run
    ]
    rows.sort(key=lambda row: (row["state"] != OPEN, row["effect"]))
    columns: Columns = {
        **plain("state", "step", "interval"),
        "family or point": ("name", str),
        **plain("date", "commits", "message"),
        "first run after it": ("run", str),
        "changed with it": ("beside", str),
    }
    return sheet("steps", "Steps", _STEPS, columns, rows)


def accepted(pasts: Sequence[Past]) -> Sheet:
    rows = [
        asdict(each) | {"points": ", ".join(past.names.get(name, name) for name in each.points)}
        for past in pasts
        for each in past.accepted
    ]
    columns = {"from run": ("run", str)} | plain("reason", "who", "when", "points")
    about = "Accepted steps: the baseline of later runs begins at the run named here."
    return sheet("accepted", "What was accepted", about, columns, rows)


def runs(pasts: Sequence[Past]) -> Sheet:
    found = [(past, ran) for past in pasts for ran in reversed(past.runs)]
    rows = [
        asdict(ran) | {"machine": past.machine, "fingerprint": past.fingerprint}
        for past, ran in found
    ]
    columns = plain(
        "created",
        "run",
        "machine",
        "fingerprint",
        "suite",
        "build",
        "environment",
        "commit",
        "branch",
    )
    about = (
        "The latest run first. Build and environment are digests: if one differs from the row below"
        " it, the build or environment changed."
    )
    return sheet("runs", "Runs", about, columns | plain("message"), rows)
