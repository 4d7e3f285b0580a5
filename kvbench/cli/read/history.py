"""kvbench history"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Ending, Long
from kvbench.cli._options import json_option
from kvbench.cli._streams import put, say, tell
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, Exit
from kvbench.texts import printable

_tell = partial(say, err=True)

_root = click.option(
    "--root",
    type=Named(),
    default="runs",
    show_default=True,
    help="Folder that holds the runs, at any depth.",
)
_machine = click.option(
    "--machine",
    metavar="FINGERPRINT",
    help="Only runs of this machine. The first letters of its fingerprint are enough.",
)
_point = click.option(
    "--point", "pattern", metavar="PATTERN", help="Only these points, such as 'decode.*.i8.*'."
)


class _Shown(Ending, click.Group):
    """A group whose options, given without a command, are passed to show."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = not args or args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["show", *args] if own else args)


@click.group(
    "history",
    cls=_Shown,
    examples={
        "kvbench history add runs/new": "Add a run to the history in runs/.",
        "kvbench history --report page --gate": "Write a page, and fail after a lasting slowdown.",
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Show how the points of many runs change over time.

    A step is a lasting change. Everything is computed from the runs below a folder, and from its
    file accepted.json, which lists accepted steps. Without a command, history means history show.
    """


@command.command("add")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=Named())
@_root
def add(runs: tuple[Path, ...], root: Path) -> None:
    """Copy each RUN into the root folder, and write its summary. A run that is already there is not
    changed.
    """
    from kvbench.history import place

    for run in runs:
        to, name = place(root, run, _tell)
        say(f"{name}: {to}")


@command.command(
    "show",
    cls=Long,
    groups={"What to show": "root machine point", "Output": "report gate json"},
    examples={"kvbench history --point 'decode.*.i8.*'": "Show the points of one format."},
)
@_root
@_machine
@_point
@click.option("--report", "folder", metavar="DIR", type=Named(), help="Also write a page into DIR.")
@click.option(
    "--gate", is_flag=True, help="Exit with 1 if a step to a slower time is not accepted."
)
@json_option
def show(
    root: Path,
    machine: str | None,
    pattern: str | None,
    folder: Path | None,
    gate: bool,
    as_json: bool,
) -> int:
    """Show each point: the number of its runs, its latest value beside its baseline, its steps."""
    from kvbench.report.history import shown, text

    found = _history(root).only(pattern, machine)
    tell(
        shown(str(root), found.pasts, found.notes), as_json, lambda: text(found.pasts, found.notes)
    )
    if folder:
        from kvbench.report.write import write_history

        say(f"report: {write_history(folder, found.pasts, found.notes)}", err=as_json)
    worst = min((trend.worst() for past in found.pasts for trend in past.every), default=0.0)
    return Exit.FAILED if gate and worst < 0 else Exit.FINE


@command.command("accept")
@click.argument("point", metavar="POINT")
@click.option(
    "--run", required=True, help="First run after the step: its name, or its folder's name."
)
@click.option("--reason", required=True, help="Why the change is wanted, such as 'smaller pages'.")
@click.option("--who", help="Name of the person who accepts it. [default: your user name]")
@_root
def accept(point: str, run: str, reason: str, who: str | None, root: Path) -> None:
    """Accept the step of POINT at a run: the baseline of later runs begins there.

    POINT is a name, or a pattern for several points, such as 'decode.*.i8.*'.
    """
    from kvbench.history import accept as said

    if not reason.strip():
        raise BadArgument("--reason is empty", "say in a few words why the change is wanted")
    who = printable(who or os.environ.get("USER") or "unknown")
    for each in said(_history(root), point, run, printable(reason), who):
        say("\n".join(f"accepted from run {each.run} on: {name}" for name in each.points))


@command.command("export")
@_root
@_machine
@_point
@click.option("-o", "--out", type=Named(), help="File to write. [default: standard output]")
def export(root: Path, machine: str | None, pattern: str | None, out: Path | None) -> None:
    """Write all results as one CSV table: a row for each point of each run."""
    from kvbench.history import exported

    put(exported(_history(root).only(pattern, machine)), out, "csv", "then export again")


def _history(root: Path) -> Any:
    from kvbench.history import load

    return load(root, _tell)
