"""kvbench gate"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kvbench.cli._judgement import exit_code, export_option, tell, wanted
from kvbench.cli._options import isa_option, json_option, only_option, plugin_option
from kvbench.cli._streams import say
from kvbench.cli._types import Named, Seconds
from kvbench.errors import Exit
from kvbench.model.verdict import NOT_COMPARABLE


@click.command("gate")
@click.option("--base", default="HEAD", show_default=True, metavar="REV|LIB", help="A git revision, or a library.")
@click.option(
    "--head", default=".", show_default=True, metavar="REV|LIB|.", help="The same; . is the sources as they are."
)
@click.option("--suite", default="gate", show_default=True, help="One of kvbench suites, or a path that ends in .toml.")
@only_option
@click.option(
    "--budget",
    type=Seconds(),
    default="4m",
    show_default=True,
    help="About what it takes; confirming a change takes longer.",
)
@click.option("--seed", type=click.IntRange(0), help="Random seed for the order of the sides. [default: drawn]")
@isa_option
@plugin_option
@click.option("--every", is_flag=True, help="Measure all points even where both sides are the same.")
@click.option("--out", type=Named(file_okay=False), help="A folder for every pair that is taken.")
@export_option
@json_option
def command(
    base: str,
    head: str,
    budget: float,
    out: Path | None,
    exports: tuple[str, ...],
    as_json: bool,
    plugin: str | None,
    **asked: Any,
) -> int:
    """Whether the kernels of HEAD are slower or faster than those of BASE, both measured in turn in the same processes.

    Sides of the same sources, or that are the same library, are not measured. A change is called one once fresh launches
    have confirmed it. The exit code says the verdict: 0 fine, 1 regression, 3 not clear, 4 if a kernel crashed
    or answered wrongly.
    """
    from kvbench.gate import Request, gate, sides
    from kvbench.machine import available_memory

    exported = wanted(exports, as_json)
    available_memory()  # where nothing can be measured, nothing need be built
    built = sides(base, head, asked["every"], report=lambda line: say(line, err=True))
    found, names = gate(*built, Request(**asked, plugin=plugin or ""), budget, out, _followed)
    tell(found, names, exported, as_json)
    code = exit_code(found.verdict)
    return Exit.ERRORS if code != Exit.FAILED and any(row.verdict == NOT_COMPARABLE for row in found.points) else code


def _followed(stages: Any) -> Iterator[tuple[str, Any]]:
    from kvbench.cli._progress import follow

    def about(done: tuple[str, Any]) -> str:
        stage, record = done
        return f"{stage}: {record.point.kernel}, context {record.point.shape.context}"

    return follow(stages.measure(), lambda: stages.visits, lambda done: 1.0, about)
