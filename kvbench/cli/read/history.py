"""kvbench history"""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._options import json_option
from kvbench.cli._path import Named
from kvbench.cli._streams import put, say, say_json
from kvbench.errors import BadArgument, Exit
from kvbench.texts import printable

_tell = partial(say, err=True)

_root = click.option(
    "--root",
    type=Named(),
    default="runs",
    show_default=True,
    help="The folder that holds the runs, at any depth.",
)
_machine = click.option(
    "--machine", metavar="FINGERPRINT", help="Only runs of this machine; its first letters will do."
)
_point = click.option("--point", "pattern", metavar="PATTERN", help="Points by name, such as 'decode.*.i8.*'.")


@click.group("history", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """What the runs below a folder say over time: a trend for each point, and the steps in it.

    The runs are the truth, and accepted.json beside them.
    """


@command.command("add")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=Named())
@_root
def add(runs: tuple[Path, ...], root: Path) -> None:
    """Copy RUNs below the root, where they are not there yet, and see that each has its summary."""
    from kvbench.history import place

    for run in runs:
        to, name = place(root, run, _tell)
        say(f"{name}: {to}")


@command.command("show")
@_root
@_machine
@_point
@click.option("--report", "folder", metavar="DIR", type=Named(), help="Also write a page into DIR.")
@click.option("--gate", is_flag=True, help="Exit with 1 where an open step leads down.")
@json_option
def show(
    root: Path,
    machine: str | None,
    pattern: str | None,
    folder: Path | None,
    gate: bool,
    as_json: bool,
) -> int:
    """For each point: its runs, the latest against its baseline, and where its efficiency changed for good."""
    from kvbench.report.history import text
    from kvbench.report.past import shown

    found = _history(root).only(pattern, machine)
    if as_json:
        say_json(shown(str(root), found.pasts, found.notes))
    else:
        say("\n".join(text(found.pasts, found.notes)))
    if folder:
        from kvbench.report.write import write_history

        say(f"report: {write_history(folder, found.pasts, found.notes)}", err=as_json)
    worst = min((trend.worst() for past in found.pasts for trend in past.trends), default=0.0)
    return Exit.FAILED if gate and worst < 0 else Exit.FINE


@command.command("accept")
@click.argument("point", metavar="POINT")
@click.option("--run", required=True, help="The first run after the step, by its name or that of its folder.")
@click.option("--reason", required=True, help="Why it is right as it is.")
@click.option("--who", help="Who says so. [default: you, as this system names you]")
@_root
def accept(point: str, run: str, reason: str, who: str | None, root: Path) -> None:
    """Accept the step of POINT at a run: from there on, it is held against what follows.

    POINT is a name, or a pattern for several, such as 'decode.*.i8.*'.
    """
    from kvbench.history import accept as said

    if not reason.strip():
        raise BadArgument("--reason is empty", "say in a few words why the step is right")
    for each in said(_history(root), point, run, printable(reason), printable(who or _user())):
        say("\n".join(f"accepted from run {each.run} on: {name}" for name in each.points))


@command.command("export")
@_root
@_machine
@_point
@click.option("-o", "--out", type=Named(), help="A file. [default: standard output]")
def export(root: Path, machine: str | None, pattern: str | None, out: Path | None) -> None:
    """All results as one CSV table, for other tools: a row for each point of each run."""
    from kvbench.history import exported

    put(exported(_history(root).only(pattern, machine)), out, "csv", "then export again")


def _history(root: Path) -> Any:
    from kvbench.history import load

    return load(root, _tell)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        return "unknown"
