"""kvbench fleet"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from kvbench.cli._options import refuse_both
from kvbench.cli._streams import say
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, BadRun, Exit


@click.command("fleet")
@click.argument("arguments", metavar="[SUITE] [-- OPTIONS OF SWEEP] | FOLDER...", nargs=-1)
@click.option(
    "--scheduler", help="Address of a running Dask scheduler, such as tcp://10.0.0.1:8786."
)
@click.option(
    "--folder",
    help="Folder on each host for its run directory. [default: ~/kvbench-fleet]",
)
@click.option(
    "--from",
    "gathered",
    is_flag=True,
    help="Measure nothing: collect the runs below each FOLDER.",
)
@click.option(
    "--out",
    type=Named(),
    default=Path("fleet"),
    show_default=True,
    help="Folder on this machine for the runs of all hosts.",
)
def command(
    arguments: tuple[str, ...],
    scheduler: str | None,
    folder: str | None,
    gathered: bool,
    out: Path,
) -> int:
    """Measure SUITE (default: quick) on each host of a Dask cluster, copy the runs here, and name
    hosts that differ from the others.

    Start the cluster by any of Dask's means (SSH, Slurm, Kubernetes), with kvbench[fleet] on each
    host. Each host measures one sweep at a time. Runs stay in --folder on the host, so the next
    call resumes an unfinished one.

    With --from, nothing is measured: run directories are searched for in each FOLDER, which may lie
    on a shared file system. Only ordinary files are copied, not links, pipes or devices.
    """
    refuse_both(**{"from": gathered, "scheduler": scheduler})
    refuse_both(**{"from": gathered, "folder": folder})
    if gathered:
        _gathered([Named().convert(each, None, None) for each in arguments], out)
        return Exit.FINE
    if not scheduler:
        raise BadArgument(
            "neither --scheduler nor --from is given",
            "--scheduler ADDRESS measures, --from FOLDER collects runs",
        )
    return _measured(arguments, scheduler, folder or "~/kvbench-fleet", out)


def _gathered(places: Sequence[Path], out: Path) -> None:
    from kvbench.fleet import gather

    if not places:
        raise BadArgument("--from names no FOLDER", "kvbench fleet --from FOLDER...")
    found = gather(places, out, partial(say, err=True))
    if not found:
        where = " or ".join(map(str, places))
        raise BadRun(f"no run directory below {where}", "name the folder that the hosts wrote to")
    _told(found)


def _measured(arguments: Sequence[str], scheduler: str, folder: str, out: Path) -> int:
    from kvbench.fleet import fleet

    lost = errors = False
    arrived = []
    for each in fleet(
        scheduler, arguments, folder, out, lambda host, line: say(f"{host}: {line}", err=True)
    ):
        say(f"{each.host}: {each.lost or f'arrived in {each.path}'}", err=True)
        lost, errors = lost or bool(each.lost), errors or each.errors
        arrived += [each.path] if each.path else []
    _told(arrived)
    return Exit.ERRORS if lost or errors else Exit.FINE


def _told(found: Sequence[Path]) -> None:
    """Print how the hosts differ, and the command that makes their pages."""
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
