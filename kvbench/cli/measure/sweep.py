"""kvbench sweep"""

import math
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kvbench.cli._options import PLACED, axis_option, isa_option, only_option, plugin_option, seed_option
from kvbench.cli._path import Named
from kvbench.cli._seconds import Seconds
from kvbench.cli._share import Share
from kvbench.cli._streams import say, say_json
from kvbench.errors import BadArgument, Exit


@click.command("sweep")
@click.argument("suite", metavar="[SUITE]", required=False)
@axis_option
@only_option
@click.option("--launches", type=int, help="Fresh processes, each visiting all points. [default: the suite's]")
@click.option("--samples", type=int, help="Samples of a visit. [default: the suite's]")
@click.option("--sample-time", type=float, help="Seconds of a sample. [default: the suite's]")
@seed_option
@click.option("--cpus", help=f"{PLACED} [default: the suite's]")
@isa_option
@click.option("--pages", help="One kind of pages, in place of the suite's.")
@click.option(
    "--library", type=click.Path(exists=True, dir_okay=False, resolve_path=True), help="Another build of the kernels."
)
@plugin_option
@click.option("--target-ci", type=Share(), help="Add launches until all points are as sure as that. With --budget.")
@click.option("--budget", type=Seconds(), help="Begin no further launch that would not end in time: 90s, 10m, 2h.")
@click.option(
    "--patience", type=Seconds(), help="Without a sign of life for so long a visit hangs. [default: forecast]"
)
@click.option("--out", type=Named(), help="The run directory. [default: a new one below runs/]")
@click.option("--resume", is_flag=True, help="Finish the run in --out; with --launches N, once it has N.")
@click.option("--report", is_flag=True, help="Write the report too, as kvbench report does.")
@click.option("--json", "as_json", is_flag=True, help="The summary as a JSON object.")
@click.pass_context
def command(
    ctx: click.Context, suite: str | None, out: Path | None, resume: bool, report: bool, as_json: bool, **asked: Any
) -> int:
    """Measure SUITE (default: quick) on this machine, into a run directory.

    SUITE is one of kvbench suites, or a path that ends in .toml. Every launch is a fresh process that visits all points
    in an order of its own; what is measured is on the disk at once, and --resume finishes what was interrupted.
    """
    from kvbench.session import Options, Session

    given = {name: value for name, value in asked.items() if _given(ctx, name)}
    if suite is not None:
        given["suite"] = suite
    if resume and out is None:
        raise BadArgument("--resume finishes the run in --out, and there is none", "name the run directory with --out")
    said = shlex.join(["kvbench", *sys.argv[1:]])
    with Session.resume(out, given) if resume else Session.begin(Options(**given), out, said) as session:
        return _measure(session, as_json, report)


def _given(ctx: click.Context, name: str) -> bool:
    from click.core import ParameterSource

    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def _measure(session: Any, as_json: bool, report: bool) -> int:
    try:
        whole = _visited(session)
        _summarise(session, as_json, report)
    except KeyboardInterrupt:
        whole = False
    if not whole:
        path = shlex.quote(str(session.directory.path))
        say(f"kvbench: interrupted; to go on: kvbench sweep --out {path} --resume", err=True)
        return Exit.INTERRUPTED
    return Exit.ERRORS if any(record.error for record in session.directory.records) else Exit.FINE


def _visited(session: Any) -> bool:
    """Whether it came to its end. However it ends, what there is can be read."""
    from kvbench.cli._progress import follow

    try:
        say("\n".join(_heading(session)), err=True)
        for _ in follow(session.records(), *_work(session), _about()):
            pass
    except KeyboardInterrupt:
        return False
    finally:
        session.finish()
    return True


def _heading(session: Any) -> list[str]:
    from kvbench.model import Point
    from kvbench.units import size, span

    manifest = session.directory.manifest
    plan, forecast = manifest.plan, manifest.forecast
    points = sum(isinstance(point, Point) for point in plan.points)
    lines = [
        f"{manifest.suite}: {manifest.question}",
        f"{points} points and {len(plan.points) - points} ceilings in {plan.launches} launches, about "
        f"{span(forecast.get('seconds', 0))} and {size(forecast.get('memory', 0))} of memory, into "
        f"{session.directory.path}",
    ]
    if session.done:
        lines.append(f"{len(session.done)} of {len(plan.points) * plan.launches} visits are done already")
    launch = forecast.get("seconds", 0) / plan.launches
    if session.options.budget and launch > session.options.budget:
        lines.append(f"a launch takes about {span(launch)}, more than the budget: one is made all the same")
    warned = [check.name for check in session.checks if check.status == "warn"]
    if warned:
        lines.append(f"what may disturb it, see kvbench doctor: {', '.join(warned)}")
    return lines


def _work(session: Any) -> tuple[Callable[[], float], Callable[[Any], float]]:
    """Seconds that are left by the forecast, and those of a record."""
    plan = session.directory.manifest.plan
    known = {(record.launch, record.point.name) for record in session.done}
    weights = session.weights()
    left = sum(
        weights[point.name]
        for number in range(plan.launches)
        for point in plan.points
        if (number, point.name) not in known
    )
    return lambda: left, lambda record: weights[record.point.name]


def _about() -> Callable[[Any], str]:
    """A few words on the newest record: its rate, beside what the run's own reads of such a footprint gave so far."""
    from kvbench.model import Probe
    from kvbench.units import counted, gbps, size

    reads: dict[tuple[int, ...], dict[int, float]] = {}  # GB/s by CPUs and bytes

    def about(record: Any) -> str:
        point, threads = record.point, counted(len(record.point.cpus), "thread")
        if record.error:
            return f"{point.kernel}, {threads}: {record.error}"
        moved = record.traffic["point"].compulsory
        rate = max(gbps(moved * s.passes, s.seconds) for s in record.samples if s.program == "point")
        if isinstance(point, Probe):
            own = reads.setdefault(point.cpus, {})
            if point.op == "read":
                own[point.bytes] = max(own.get(point.bytes, 0.0), rate)
            return f"{point.op}, {threads}" + (f": {rate:.3g} GB/s" if point.bytes else "")
        text = f"{point.kernel}, context {point.shape.context}, {threads}: {rate:.3g} GB/s"
        own, footprint = reads.get(point.cpus, {}), record.layers * moved
        near = min(own, key=lambda count: abs(math.log(count / footprint)), default=0)
        return f"{text}, {rate / own[near]:.0%} of reads of {size(near)}" if near else text

    return about


def _summarise(session: Any, as_json: bool, report: bool) -> None:
    """What there is so far; nothing can be said of a run without records."""
    from kvbench.analysis.summary import summary, swept
    from kvbench.report.sweep import text
    from kvbench.results import load

    run = load(session.directory.path)
    found = run.findings()
    page = _page(run, found) if report else ""
    said = summary(found)
    if as_json:
        say_json(swept(said, str(run.path), page))
        return
    last = f"report: {page}" if report else f"next: {_program()} report {shlex.quote(str(run.path))}"
    say("\n".join([*text(said), "", *_ending(session), last]))


def _page(run: Any, found: Any) -> str:
    from kvbench.report.write import BESIDE, own, write

    return str(write(own(run.path / BESIDE), [(found, run.manifest)]))


def _program() -> str:
    """How to call this kvbench again from where it was called."""
    return "kvbench" if shutil.which("kvbench") else f"{shlex.quote(sys.executable)} -m kvbench.cli"


def _ending(session: Any) -> list[str]:
    from kvbench.model import Probe
    from kvbench.units import counted, size

    peak, forecast = session.peak_memory(), session.directory.manifest.forecast.get("memory", 0)
    path, planned = str(session.directory.path), session.directory.manifest.plan.launches
    launches = len({record.launch for record in session.directory.records})
    short = [f"stopped after {launches} of {planned} launches"] if launches < planned else []
    failed = {r.point.name: r.error for r in session.directory.records if r.error and isinstance(r.point, Probe)}
    for name, error in list(failed.items())[:1]:
        short.append(f"{counted(len(failed), 'ceiling')} failed, first {name}: {error}")
    return [
        *short,
        f"memory: {size(peak)} at most, {size(forecast)} forecast",
        f"run directory: {path}",
    ]
