"""kvbench fleet"""

from pathlib import Path

import click

from kvbench.cli._streams import say
from kvbench.cli._types import Named
from kvbench.errors import Exit


@click.command("fleet")
@click.argument("arguments", metavar="[SUITE] [-- OPTIONS OF SWEEP]", nargs=-1)
@click.option(
    "--scheduler",
    required=True,
    help="Address of a Dask scheduler that is running, such as tcp://10.0.0.1:8786.",
)
@click.option(
    "--folder",
    default="~/kvbench-fleet",
    show_default=True,
    help="On the hosts: for their run directories.",
)
@click.option(
    "--out",
    type=Named(),
    default=Path("fleet"),
    show_default=True,
    help="Here: a folder for each host's run.",
)
def command(arguments: tuple[str, ...], scheduler: str, folder: str, out: Path) -> int:
    """Measure SUITE (default: quick) once on each host of a Dask cluster, and bring the runs back.

    Start the cluster by any of Dask's means (SSH, Slurm, Kubernetes), with kvbench[fleet] on each
    host. A host has one sweep at a time. What is in --folder there stays: the next call resumes it,
    and kvbench gather brings it without Dask.
    """
    from kvbench.cli.read.gather import tell
    from kvbench.fleet import fleet

    lost = errors = False
    arrived = []
    for each in fleet(
        scheduler, arguments, folder, out, lambda host, line: say(f"{host}: {line}", err=True)
    ):
        say(f"{each.host}: {each.lost or f'arrived in {each.path}'}", err=True)
        lost, errors = lost or bool(each.lost), errors or each.errors
        arrived += [each.path] if each.path else []
    tell(arrived)
    return Exit.ERRORS if lost or errors else Exit.FINE
