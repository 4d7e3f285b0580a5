"""kvbench gate"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._judgement import exit_code, export_option, tell, wanted
from kvbench.cli._measuring import say_busy
from kvbench.cli._options import isa_option, json_option, only_option, plugin_option
from kvbench.cli._streams import say
from kvbench.cli._types import TIME, Count, Named
from kvbench.errors import Exit
from kvbench.model.verdict import NOT_COMPARABLE


@click.command(
    "gate",
    cls=Long,
    groups={
        "What to compare": "base head suite only isa plugin every",
        "How": "budget seed",
        "Output": "out export json",
    },
    examples={
        "kvbench gate": "The working tree against the last commit.",
        "kvbench gate --base origin/main --export junit=gate.xml": "Against a branch, for CI.",
    },
)
@click.option(
    "--base",
    default="HEAD",
    show_default=True,
    metavar="REV|LIB|WHEEL",
    help="Git revision, library or wheel.",
)
@click.option(
    "--head",
    default=".",
    show_default=True,
    metavar="REV|LIB|WHEEL|.",
    help="Git revision, library or wheel; . is the working tree.",
)
@click.option(
    "--suite",
    default="gate",
    show_default=True,
    help="Name of a suite, or a path that ends in .toml.",
)
@only_option
@click.option(
    "--budget",
    type=TIME,
    default="4m",
    show_default=True,
    help=(
        "Time to measure in, confirming included; it may end within a launch. Building is not"
        " counted."
    ),
)
@click.option(
    "--seed", type=Count(0), help="Seed of the random order of the sides. [default: drawn]"
)
@isa_option
@plugin_option
@click.option(
    "--every",
    is_flag=True,
    help="Measure all points, even those whose code is the same on both sides.",
)
@click.option("--out", type=Named(file_okay=False), help="Folder for the timings of every pair.")
@export_option
@json_option
def command(
    base: str, head: str, budget: float, out: Path | None, as_json: bool, **asked: Any
) -> int:
    """Build the kernels of BASE and HEAD, and say whether HEAD is slower or faster.

    Both are measured in turn in the same processes. Nothing is measured where both have the same
    code, comments aside. A change counts only after fresh launches have confirmed it. The exit code
    gives the verdict.
    """
    from kvbench.gate import Request, gate, sides, tiers
    from kvbench.machine import available_memory

    exported, plugin = [wanted(word, as_json) for word in asked.pop("exports")], asked.pop("plugin")
    available_memory()  # where nothing can be measured, nothing need be built
    request = Request(**asked, plugin=plugin)
    one, other = sides(
        base, head, request.every, report=lambda line: say(line, err=True), tiers=tiers(request)
    )
    found, names = gate(one, other, request, budget, out, _followed)
    tell(found, names, exported, as_json)
    code = exit_code(found.verdict)
    return (
        Exit.ERRORS
        if code != Exit.FAILED and any(row.verdict == NOT_COMPARABLE for row in found.points)
        else code
    )


def _followed(stages: Any) -> Iterator[tuple[str, Any]]:
    from kvbench.cli._progress import follow

    def about(done: tuple[str, Any]) -> str:
        stage, record = done
        return f"{stage}: {record.point.kernel}, context {record.point.shape.context}"

    say_busy("taskset -c LIST")
    return follow(
        stages.measure(), lambda: stages.visits, lambda done: 1.0, about, lambda: stages.budget.left
    )
