"""Options that several commands have in common."""

import click

from kvbench.cli._types import Named
from kvbench.model import PLACES

PLACED = f"A list such as 0-3,8; or {', '.join(PLACES)}."

plugin_option = click.option(
    "--plugin",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="A shared object with kernels of your own, beside ours.",
)
axis_option = click.option(
    "--axis", "axes", multiple=True, metavar="NAME=VALUE[,VALUE]", help="In place of the suite's own values."
)
only_option = click.option(
    "--only", multiple=True, metavar="PATTERN", help="Points whose name matches, such as 'decode.*.i8.*'."
)
seed_option = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the order in which points are visited."
)
threads_option = click.option("--threads", default="all", show_default=True, help="Threads: a number, or all.")
cpus_option = click.option("--cpus", help=f"{PLACED} [default: compact]")
isa_option = click.option("--isa", help="Force a tier. [default: $KVBENCH_ISA, else the best that this CPU runs]")
override_option = click.option("--override", type=Named(), help="A TOML file that corrects what the system says.")
json_option = click.option("--json", "as_json", is_flag=True, help="A JSON object instead of text.")
