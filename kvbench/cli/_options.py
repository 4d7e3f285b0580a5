"""Options that several commands have in common."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from kvbench.cli._types import BYTES, TIME, Count, Named
from kvbench.model import PLACES

PLACED = f"Which CPUs: a list such as 0-3,8; or {', '.join(PLACES)}."

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)
plugin_option = click.option(
    "--plugin",
    type=FILE,
    multiple=True,
    help=(
        "Shared object with decode kernels of your own, to use beside ours. May be repeated: a"
        " variant that old.so and new.so both have is called VARIANT@old and VARIANT@new."
    ),
)
patience_option = click.option(
    "--patience",
    type=TIME,
    help="End a plug-in's kernel that has given no answer after this time, such as 2m.",
)
only_option = click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only points whose name matches, such as 'decode.*.i8.*'.",
)
seed_option = click.option(
    "--seed", type=Count(0), help="Seed of the random order of the visits. [default: 1]"
)
threads_option = click.option(
    "--threads", default="all", show_default=True, help="Number of threads, or all."
)
cpus_option = click.option("--cpus", help=f"{PLACED} [default: compact]")
isa_option = click.option(
    "--isa", help="Instruction set. [default: $KVBENCH_ISA, else the best that this CPU runs]"
)
override_option = click.option(
    "--override", type=Named(), help="TOML file that corrects what the system reports."
)
tuning_option = click.option(
    "--tuning",
    type=Named(),
    metavar="FILE|off",
    help=(
        "File with the schedule timings of earlier runs; off: do not tune. [default: in the user's"
        " cache folder]"
    ),
)
out_option = click.option(
    "--out", type=Named(), help="Run directory. [default: a new one below runs/]"
)
neighbour_option = click.option(
    "--neighbour",
    is_flag=True,
    default=None,
    help="Also time each point while the other cores stream memory.",
)
batch_option = click.option(
    "--users",
    "--batch",
    "batch",
    type=Count(),
    default=1,
    show_default=True,
    help="Sequences decoded together on one copy of the model.",
)
weights_option = click.option(
    "--weights", type=BYTES, help="Bytes of weights that a step reads, such as 16GB."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def with_options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """As decorators that stand below each other in this order."""
    return lambda command: reduce(lambda own, option: option(own), reversed(options), command)


_AXIS = click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUE[,VALUE]",
    help="Measure these values of an axis instead of the suite's. May be repeated.",
)
_PLACED = (
    click.option("--cpus", help=f"{PLACED} [default: the suite's]"),
    isa_option,
    click.option(
        "--pages", help="Memory pages to ask for, instead of the suite's: base, thp or huge."
    ),
    click.option(
        "--schedule", help="How rows are read and prefetched, instead of the suite's; auto: tuned."
    ),
    click.option("--library", type=FILE, help="Measure another build of the kernel library."),
)
which_options = with_options(_AXIS, only_option, *_PLACED)
suite_options = with_options(  # what kvbench.session.Options has of them
    _AXIS,
    only_option,
    click.option(
        "--launches",
        type=Count(),
        help="Fresh processes; each visits all points. [default: the suite's]",
    ),
    click.option("--samples", type=Count(), help="Samples in a visit. [default: the suite's]"),
    click.option("--sample-time", type=float, help="Seconds of a sample. [default: the suite's]"),
    seed_option,
    *_PLACED,
    plugin_option,
    neighbour_option,
)
