"""Options that several commands have in common."""

from collections.abc import Callable
from typing import Any

import click

from kvbench.cli._types import Named
from kvbench.model import PLACES

PLACED = f"A list such as 0-3,8; or {', '.join(PLACES)}."

plugin_option = click.option(
    "--plugin",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="A shared object with kernels of your own, beside ours.",
)
only_option = click.option(
    "--only", multiple=True, metavar="PATTERN", help="Points whose name matches, such as 'decode.*.i8.*'."
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Random seed for the order in which points are visited.",
)
threads_option = click.option("--threads", default="all", show_default=True, help="Threads: a number, or all.")
cpus_option = click.option("--cpus", help=f"{PLACED} [default: compact]")
isa_option = click.option("--isa", help="Force a tier. [default: $KVBENCH_ISA, else the best that this CPU runs]")
override_option = click.option("--override", type=Named(), help="A TOML file that corrects what the system says.")
tuning_option = click.option(
    "--tuning",
    type=Named(),
    metavar="FILE|off",
    help="What earlier runs have seen of schedules; off: the default one. [default: in the user's cache folder]",
)
neighbour_option = click.option(
    "--neighbour",
    is_flag=True,
    default=None,
    help="Time the point too while the other cores of its nodes stream memory.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="A JSON object instead of text.")


def with_options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """As decorators that stand below each other in this order."""

    def of(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return of


_AXIS = click.option(
    "--axis", "axes", multiple=True, metavar="NAME=VALUE[,VALUE]", help="In place of the suite's own values."
)
_PLACED = (
    click.option("--cpus", help=f"{PLACED} [default: the suite's]"),
    isa_option,
    click.option("--pages", help="One kind of pages, in place of the suite's."),
    click.option("--schedule", help="One order of rows and prefetches, in place of the suite's; auto: tuned."),
    click.option(
        "--library",
        type=click.Path(exists=True, dir_okay=False, resolve_path=True),
        help="Another build of the kernels.",
    ),
)
which_options = with_options(_AXIS, only_option, *_PLACED)
suite_options = with_options(  # what kvbench.session.Options has of them
    _AXIS,
    only_option,
    click.option("--launches", type=int, help="Fresh processes, each visiting all points. [default: the suite's]"),
    click.option("--samples", type=int, help="Samples of a visit. [default: the suite's]"),
    click.option("--sample-time", type=float, help="Seconds of a sample. [default: the suite's]"),
    click.option("--seed", type=click.IntRange(0), help="Random seed for the order of the visits. [default: 1]"),
    *_PLACED,
    plugin_option,
    neighbour_option,
)
