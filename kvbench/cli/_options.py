"""Options that several commands have in common."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from kvbench.cli._types import BYTES, TIME, Count, Named
from kvbench.errors import BadArgument
from kvbench.model import FIELDS

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)
_ABOUT = {field.name: field.about for field in FIELDS}
_SAME: dict[str, dict[str, Any]] = {  # options that mean the same in every command
    "threads": {"type": str, "metavar": "N|all", "help": "Number of threads; all: one per core."},
    "cpus": {"type": str, "metavar": "CPUS", "help": _ABOUT["cpus"]},
    "isa": {"type": str, "metavar": "TIER", "help": _ABOUT["isa"]},
    "pages": {"type": str, "metavar": "KIND", "help": _ABOUT["pages"]},
    "library": {"type": FILE, "help": "Measure the kernels of this library, another build (.so)."},
    "context": {"type": str, "metavar": "TOKENS", "help": _ABOUT["context"]},
    "q_len": {"type": str, "metavar": "N", "help": _ABOUT["q_len"]},
    "dtype": {"type": str, "metavar": "FORMAT", "help": _ABOUT["dtype"]},
}


def same(name: str, otherwise: object, **more: Any) -> Callable[..., Any]:
    """An option of _SAME. `otherwise`: its default, in words for its help."""
    said = f"{_SAME[name]['help']} [default: {otherwise}]"
    return click.option(f"--{name.replace('_', '-')}", **_SAME[name] | more | {"help": said})


plugin_option = click.option(
    "--plugin",
    type=FILE,
    multiple=True,
    help=(
        "Shared object (.so) with decode kernels of your own, to use beside ours. May be repeated:"
        " if old.so and new.so have one variant, it is called VARIANT@old and VARIANT@new."
    ),
)
patience_option = click.option(
    "--patience",
    type=TIME,
    help="Stop a plug-in's kernel that gives no answer within this time, such as 2m.",
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
threads_option = same("threads", "all", default="all")
cpus_option = same("cpus", "compact")
isa_option = same("isa", "$KVBENCH_ISA, else the best that this CPU runs")
override_option = click.option(
    "--override", type=Named(), help="TOML file that corrects what the system reports."
)
tuning_option = click.option(
    "--tuning",
    type=Named(),
    metavar="FILE|off",
    help=(
        "File that keeps the timings of schedules for later runs; off: do not tune. [default: a"
        " file in your cache folder]"
    ),
)
out_option = click.option(
    "--out", type=Named(), help="Run directory. [default: a new one below runs/]"
)
launches_option = click.option(
    "--launches",
    type=Count(),
    help="Number of launches: fresh processes that each visit all points. [default: the suite's]",
)
report_option = click.option(
    "--report", is_flag=True, help="Also write the HTML report, as kvbench report does."
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
    help="Number of sequences that one copy of the model decodes together.",
)
weights_option = click.option(
    "--weights", type=BYTES, help="Bytes of weights that one step reads, such as 16GB."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def refuse_both(**flags: object) -> None:
    """Refuse more than one of these flags, given as they were set: each asks for another task."""
    if len(both := [f"--{name.replace('_', '-')}" for name in flags if flags[name]]) > 1:
        raise BadArgument(f"{' and '.join(both)} exclude each other", "give only one of them")


def with_options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """One decorator that adds all of these options, in this order."""
    return lambda command: reduce(lambda own, option: option(own), reversed(options), command)


suite_options = with_options(  # the fields of kvbench.session.Options have these names
    click.option(
        "--axis",
        "axes",
        multiple=True,
        metavar="NAME=VALUE[,VALUE]",
        help=(
            "Measure these values of an axis instead of the suite's, such as context=8k,32k. May be"
            " repeated."
        ),
    ),
    only_option,
    launches_option,
    click.option(
        "--samples", type=Count(), help="Number of samples in a visit. [default: the suite's]"
    ),
    click.option(
        "--sample-time",
        type=float,
        help="Length of a sample in seconds, such as 0.03. [default: the suite's]",
    ),
    seed_option,
    same("cpus", "the suite's"),
    isa_option,
    same("pages", "the suite's"),
    click.option(
        "--schedule",
        help=(
            "How kernels read and prefetch rows: a preset, or auto to tune it. [default: the"
            " suite's]"
        ),
    ),
    same("library", "the installed one"),
    plugin_option,
    neighbour_option,
)
