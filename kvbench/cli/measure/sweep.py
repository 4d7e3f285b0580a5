"""kvbench sweep"""

import shlex
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._measuring import command_line, concluded, given, say_busy
from kvbench.cli._options import (
    json_option,
    out_option,
    refuse_both,
    report_option,
    suite_options,
    tuning_option,
)
from kvbench.cli._point import option_name
from kvbench.cli._progress import follow_each
from kvbench.cli._signals import resumable
from kvbench.cli._streams import say, say_json, tell
from kvbench.cli._types import SHARE, TIME
from kvbench.errors import BadArgument
from kvbench.model import FIELDS

# options that --tune-only takes
_TUNED_BY = {"suite", "axes", "only", "cpus", "isa", "pages", "schedule", "library", "tuning"}


class _WithAxes(Long):
    """A command whose help also lists the axes."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Axes"):
            formatter.write_dl([(field.name, field.about) for field in FIELDS if field.axis])
        super().format_epilog(ctx, formatter)


@click.command(
    "sweep",
    cls=_WithAxes,
    groups={
        "What to measure": "axis only cpus isa pages schedule library plugin neighbour",
        "How": "launches samples sample-time budget target-ci until-decided patience seed tuning",
        "Instead of a sweep": "dry-run tune-only fresh",
        "Output": "out resume commit report verbose json",
    },
    examples={
        "kvbench sweep --axis context=8k,32k --report": "Measure two contexts, write the report.",
        "kvbench sweep standard --budget 10m": "Make as many launches as ten minutes allow.",
    },
)
@click.argument("suite", metavar="[SUITE]", required=False)
@suite_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Measure nothing: show the points, the time and memory they need, and what is left out.",
)
@click.option(
    "--tune-only",
    is_flag=True,
    help=(
        "Only time schedules, as the first launch does: find the fastest for each class of points,"
        " and keep the timings for later runs."
    ),
)
@click.option("--fresh", is_flag=True, help="With --tune-only: ignore the timings of earlier runs.")
@tuning_option
@click.option(
    "--target-ci",
    type=SHARE,
    help="Add launches until all intervals are this narrow, such as 1%. Needs --budget.",
)
@click.option(
    "--until-decided/--no-until-decided",
    default=None,
    help=(
        'Add launches while questions such as "is i8 faster than f16?" are not decided. [default:'
        " the suite's; with --launches: no]"
    ),
)
@click.option(
    "--budget",
    type=TIME,
    help="Time for measuring, such as 90s, 10m or 2h. When it is over, measuring stops, even within"
    " a launch.",
)
@click.option(
    "--patience",
    type=TIME,
    help="Stop a visit without progress for this time, such as 5m. [default: from the forecast]",
)
@click.option(
    "--commit",
    metavar="REV",
    help="Commit that is measured, for kvbench history. [default: git's in this folder]",
)
@out_option
@click.option(
    "--resume",
    is_flag=True,
    help="Finish the run in --out. With --launches N: go on until it has N launches.",
)
@report_option
@click.option(
    "--verbose",
    is_flag=True,
    help="Print every sentence of the report at the end, not only the main answers.",
)
@json_option
def command(
    out: Path | None, report: bool, verbose: bool, as_json: bool, **asked: Any
) -> int | None:
    """Measure SUITE (default: quick) on this machine, and write a run directory.

    SUITE is a name from kvbench list suites, or a path that ends in .toml. Each launch is a fresh
    process that visits all points in random order. Every result is written to disk at once, so
    --resume can finish an interrupted run.
    """
    from kvbench.session import Options, Session

    dry, tune, fresh, resume = (
        asked.pop(name) for name in ("dry_run", "tune_only", "fresh", "resume")
    )
    asked = given(asked)
    refuse_both(dry_run=dry, tune_only=tune, resume=resume)
    if resume and out is None:
        raise BadArgument("--resume needs --out", "name the run directory to finish")
    if fresh and not tune:
        raise BadArgument("--fresh only works with --tune-only", "add --tune-only")
    if dry:
        _planned(Options(**asked), as_json)
        return None
    if tune:
        _refuse_more(asked | {"out": out, "report": report, "verbose": verbose})
        _tuned(Options(**asked), fresh, as_json)
        return None
    if out:
        resumable("sweep", out)
    with (
        Session.resume(out, asked)
        if resume and out
        else Session.begin(Options(**asked), out, command_line())
    ) as session:
        return concluded(session, "sweep", partial(_tell, report, verbose, as_json))


def _refuse_more(asked: dict[str, Any]) -> None:
    """Refuse options that --tune-only has no use for: it leaves no run directory."""
    more = [name for name, value in asked.items() if value and name not in _TUNED_BY]
    if more:
        raise BadArgument(
            f"--tune-only only times schedules; {option_name(more[0])} needs a full sweep",
            f"leave {' and '.join(map(option_name, more))} out",
        )


def _planned(options: Any, as_json: bool) -> None:
    from kvbench.report.planned import facts, planned_text
    from kvbench.session import planned

    sweep, seen, _ = planned(options, options.kernels)
    tell(facts(sweep, seen), as_json, lambda: planned_text(sweep, seen))


def _tuned(options: Any, fresh: bool, as_json: bool) -> None:
    from kvbench.report.planned import TunedClass, TunedClasses, tuned_text
    from kvbench.session.planning import tune

    say_busy()
    about = partial(follow_each, about=lambda record: record.point.kernel)
    suite, tunings, file, remarks = tune(options, fresh, about)
    for remark in remarks:
        say(remark, err=True)
    classes = tuple(TunedClass(tuned.of, tuned.choice) for tuned in tunings)
    shown = TunedClasses(suite=suite, file=file, classes=classes)
    tell(shown, as_json, lambda: tuned_text(tunings))


def _tell(report: bool, verbose: bool, as_json: bool, run: Any) -> None:
    """Print what the run says so far; it may be unfinished."""
    from kvbench.report.course import ending
    from kvbench.report.ending import short, summary, text
    from kvbench.report.words import numa
    from kvbench.report.write import BESIDE, own, write

    found, path = run.findings(), str(run.path)
    page = str(write(own(run.path / BESIDE), [(found, run.manifest)])) if report else ""
    if as_json:
        say_json(summary(found, path, page))
        return
    program = (
        "kvbench" if shutil.which("kvbench") else f"{shlex.quote(sys.executable)} -m kvbench.cli"
    )
    last = f"  report    {page}" if report else f"  next      {program} report {shlex.quote(path)}"
    lines = text(found) if verbose else short(found)
    if found.placed:
        lines += ["", *numa.lines(found.placed)]
    lines += ["", *ending(run.manifest, path, run.records, found.open)]
    say("\n".join([*lines, last]))
