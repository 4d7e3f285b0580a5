"""kvbench submit"""

from pathlib import Path

import click

from kvbench.cli._streams import say
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, Exit


@click.command("submit")
@click.argument("path", metavar="RUN|FILE", type=Named())
@click.option("--out", type=Named(dir_okay=False), help="The archive, which ends in .tar.gz.")
@click.option(
    "--name", default="", help="What the machine shall be called. [default: by its fingerprint]"
)
@click.option(
    "--check",
    is_flag=True,
    help="Say in one line whether the archive FILE is a score, and whether it is valid.",
)
def command(path: Path, out: Path | None, name: str, check: bool) -> int:
    """Make an archive of a score that others can check: its journal and digests, without host names
    and paths.

    The CPU's name is left out too, unless it is given as --name. --check takes an archive from
    anybody: it unpacks nothing but a score's own files, and computes the score anew. Valid means
    consistent, not true: nobody can tell an invented journal from a measured one.
    """
    from kvbench.report.words import said
    from kvbench.submission import ENDING, checked, pack

    if check == bool(out):
        raise BadArgument(
            "either --out or --check is needed", "kvbench submit RUN --out FILE, or --check FILE"
        )
    if out and not out.name.endswith(ENDING):
        raise BadArgument(f"--out is {out}", f"a file that ends in {ENDING}")
    found = pack(path, out, name) if out else checked(path)
    topics = ("verdict", "machine", "consistent") if check else ("verdict", "machine")
    say("; ".join(filter(None, (said("score", name, found) for name in topics))))
    return Exit.UNCLEAR if found.state == "invalid" else Exit.FINE
