"""kvbench gather"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from kvbench.cli._streams import say
from kvbench.cli._types import Named


@click.command("gather")
@click.argument("places", metavar="FOLDER...", nargs=-1, required=True, type=Named())
@click.option(
    "--out",
    type=Named(),
    default=Path("fleet"),
    show_default=True,
    help="A folder for each host's run.",
)
def command(places: tuple[Path, ...], out: Path) -> None:
    """Bring the runs of many hosts together, whatever brought them here, and say which hosts are
    not like the others.

    A FOLDER is searched for run directories: a shared file system, or what rsync has fetched. Only
    ordinary files are
    copied: links, pipes and devices are left out.
    """
    from kvbench.errors import BadRun
    from kvbench.fleet import gather

    found = gather(places, out, partial(say, err=True))
    if not found:
        where = " or ".join(map(str, places))
        raise BadRun(f"no run directory below {where}", "name the folder that kvbench fleet wrote")
    tell(found)


def tell(found: Sequence[Path]) -> None:
    """How the hosts differ."""
    from kvbench.analysis.differs.hosts import hosts
    from kvbench.report.words import template
    from kvbench.results import load

    runs = {path.name: load(path) for path in found}
    machines = {
        host: (run.machine.fingerprint, run.machine.environment) for host, run in runs.items()
    }
    found_of = hosts({host: run.points for host, run in runs.items()}, machines)
    say(template("hosts", "lines", found_of).rstrip())
    if found:
        say(f"their pages: kvbench report {found[0].parent}/* --out report")
