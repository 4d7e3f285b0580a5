"""kvbench sweep"""

import shlex
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, concluded, given
from kvbench.cli._options import json_option, out_option, suite_options, tuning_option
from kvbench.cli._signals import resumable
from kvbench.cli._streams import say, say_json
from kvbench.cli._types import SHARE, TIME
from kvbench.errors import BadArgument
from kvbench.model import FIELDS


class _WithAxes(click.Command):
    """Its help lists the axes, and shows examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Axes"):
            formatter.write_dl([(field.name, field.about) for field in FIELDS if field.axis])
        with formatter.section("Examples"):
            formatter.write_dl(_EXAMPLES)
        super().format_epilog(ctx, formatter)


_EXAMPLES = [
    ("kvbench sweep --report", "Measure the suite quick and write its report."),
    ("kvbench sweep --axis context=8k,32k --axis dtype=f16,i8", "Two contexts in two formats."),
    (
        "kvbench sweep standard --budget 10m --out runs/new",
        "As many launches as ten minutes allow.",
    ),
]


@click.command("sweep", cls=_WithAxes)
@click.argument("suite", metavar="[SUITE]", required=False)
@suite_options
@tuning_option
@click.option(
    "--target-ci",
    type=SHARE,
    help="Add launches until all intervals are this narrow. Needs --budget.",
)
@click.option(
    "--until-decided/--no-until-decided",
    default=None,
    help=(
        "Add launches for points whose questions are open. [default: as the suite says, unless"
        " --launches is given]"
    ),
)
@click.option(
    "--budget",
    type=TIME,
    help="Time to measure in, such as 90s, 10m or 2h; it may end within a launch.",
)
@click.option(
    "--patience",
    type=TIME,
    help="Stop a visit that makes no progress for this time. [default: by the forecast]",
)
@click.option(
    "--commit",
    metavar="REV",
    help="Commit that is measured, for kvbench history. [default: git's, here]",
)
@out_option
@click.option(
    "--resume", is_flag=True, help="Finish the run in --out; with --launches N, until it has N."
)
@click.option("--report", is_flag=True, help="Also write the report, as kvbench report does.")
@click.option(
    "--verbose",
    is_flag=True,
    help="End with every sentence of the report instead of the main answers.",
)
@json_option
def command(
    out: Path | None, resume: bool, report: bool, verbose: bool, as_json: bool, **asked: Any
) -> int:
    """Measure SUITE (default: quick) on this machine, and write a run directory.

    SUITE is a name from kvbench suites, or a path that ends in .toml. Each launch is a fresh
    process that visits all points in random order. Every result is written at once, so --resume can
    finish an interrupted run.
    """
    from kvbench.session import Options, Session

    asked = given(asked)
    if resume and out is None:
        raise BadArgument("--resume needs --out", "name the run directory that is to be finished")
    if out:
        resumable("sweep", out)
    with (
        Session.resume(out, asked)
        if resume and out
        else Session.begin(Options(**asked), out, command_line())
    ) as session:
        return concluded(session, "sweep", partial(_tell, report, verbose, as_json))


def _tell(report: bool, verbose: bool, as_json: bool, run: Any) -> None:
    """What there is so far."""
    from kvbench.report.course import ending
    from kvbench.report.ending import short, summary, text
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
    lines = text(summary(found)) if verbose else short(summary(found))
    lines += ["", *ending(run.manifest, path, run.records, found.open)]
    say("\n".join([*lines, last]))
