"""kvbench gate"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._judgement import exit_code, export_option, tell, wanted
from kvbench.cli._measuring import given, say_busy
from kvbench.cli._options import (
    isa_option,
    json_option,
    only_option,
    plugin_option,
    same,
    with_options,
)
from kvbench.cli._streams import say
from kvbench.cli._types import TIME, Count, Named
from kvbench.errors import BadArgument, Exit, unknown_word
from kvbench.model.verdict import NOT_COMPARABLE

_AXES = ("context", "dtype", "threads")  # of an engine's points
_OF_ENGINES, _OF_KERNELS = ("model", *_AXES), ("isa", "plugin")


@click.command(
    "gate",
    cls=Long,
    groups={
        "What to compare": "base head suite only isa plugin every",
        "Another engine": "engine model context dtype threads",
        "Another checkout": "source build product",
        "How": "budget seed",
        "Output": "out export json",
    },
    examples={
        "kvbench gate": "The working tree against the last commit.",
        "kvbench gate --base origin/main --export junit=gate.xml": "Against a branch, for CI.",
        "kvbench gate --engine ggml --base a/libggml.so --head b/libggml.so": "Two of llama.cpp's.",
    },
)
@click.option(
    "--base",
    default="HEAD",
    show_default=True,
    metavar="REV|LIB|WHEEL",
    help="Git revision, library or wheel; of another engine, its library or its interpreter.",
)
@click.option(
    "--head",
    default=".",
    show_default=True,
    metavar="REV|LIB|WHEEL|.",
    help="The same; . is the working tree.",
)
@click.option(
    "--suite",
    help=(
        "Name of a suite, or a path that ends in .toml. [default: gate, and with --engine engine]"
    ),
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
@click.option(
    "--engine",
    metavar="NAME",
    help="Compare two builds of another engine, such as ggml; kvbench peers lists them.",
)
@click.option("--model", help="Models whose heads to take. [default: the suite's]")
@with_options(*(same(name, "the suite's") for name in _AXES))
@click.option(
    "--source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Checkout of another project; BASE and HEAD are its revisions, or . as it stands.",
)
@click.option("--build", metavar="CMD", help="Shell command that builds it, in a worktree.")
@click.option(
    "--product",
    metavar="PATH",
    help="Library that CMD makes: of the engine; without --engine, a plug-in.",
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

    With --engine they are two builds of another engine, each in a process of its own. With --source
    they are two revisions of another project, built by its own command.
    """
    from kvbench.gate import gate
    from kvbench.machine import available_memory

    exported = [wanted(word, as_json) for word in asked.pop("exports")]
    available_memory()  # where nothing can be measured, nothing need be built
    with ExitStack() as owned:
        rivals = _rivals(base, head, owned, **asked)
        found, names = gate(rivals, budget, out, _followed)
    tell(found, names, exported, as_json)
    code = exit_code(found.verdict)
    return (
        Exit.ERRORS
        if code != Exit.FAILED and any(row.verdict == NOT_COMPARABLE for row in found.points)
        else code
    )


def _rivals(
    base: str,
    head: str,
    owned: ExitStack,
    source: Path | None,
    build: str | None,
    product: str | None,
    **asked: Any,
) -> Any:
    """owned: what is built or copied lasts as long."""
    from kvbench.gate.checkout import products, same
    from kvbench.gate.rivals import unchanged
    from kvbench.leftovers import scratch

    if any((source, build, product)) and not all((source, build, product)):
        raise BadArgument(
            "--source, --build and --product belong together",
            "a checkout, the command that builds it, and the library that it makes",
        )
    _refuse_misplaced(asked)
    rivals = _kernels if asked["engine"] is None else _engines
    folder = Path(owned.enter_context(scratch()))
    if not (source and build and product):
        return rivals(base, head, folder, None, **asked)
    every = asked["every"]
    built = owned.enter_context(
        products(source, build, product, base, head, report=_building, every=every)
    )
    if same(*built) and not every:
        return unchanged(*(each.text for each in built))
    one, other = (str(each.path) for each in built)
    return rivals(one, other, folder, built, **asked)


def _refuse_misplaced(asked: dict[str, Any]) -> None:
    """Before anything is built."""
    from kvbench.peers.known import entries

    engine = asked["engine"]
    if engine is None:
        if wrong := _named(asked, _OF_ENGINES):
            raise BadArgument(
                f"{wrong}: a gate of kernels has the points of its suite",
                "--only picks some of them; --engine NAME compares two builds of an engine",
            )
        return
    if engine not in entries():
        raise unknown_word("--engine", engine, entries())
    if wrong := _named(asked, _OF_KERNELS):
        raise BadArgument(f"{wrong} is of our kernels, not of another engine's", "leave it out")


def _named(asked: dict[str, Any], options: tuple[str, ...]) -> str:
    return " ".join(f"--{name}" for name in options if asked[name])


def _kernels(base: str, head: str, folder: Path, built: Any, **asked: Any) -> Any:
    """built: two products of another project's checkout, which are plug-ins; None without one."""
    from kvbench.gate import Request, kernels, sides, tiers

    for name in _OF_ENGINES:
        asked.pop(name)
    asked.pop("engine")
    request = Request(**given(asked))
    found = sides(base, head, request.every, report=_building, tiers=tiers(request))
    if built:
        found = tuple(
            replace(side, text=each.text) for side, each in zip(found, built, strict=True)
        )
    one, other = found
    return kernels.rivals(one, other, request, folder)


def _engines(base: str, head: str, folder: Path, built: Any, **asked: Any) -> Any:
    """As _kernels(), of products that are an engine's libraries."""
    from kvbench.gate import EngineRequest, engine_side, engines

    for name in _OF_KERNELS:
        asked.pop(name)
    axes = tuple(f"{name}={value}" for name in _OF_ENGINES if (value := asked.pop(name)))
    request = EngineRequest(axes=axes, **given(asked))
    known = [(each.text, each.tree) for each in built or ()] or [("", "")] * 2
    one, other = (
        engine_side(request.engine, path, *own)
        for path, own in zip((base, head), known, strict=True)
    )
    return engines.rivals(one, other, request)


def _building(line: str) -> None:
    say(line, err=True)


def _followed(stages: Any) -> Iterator[tuple[str, Any]]:
    from kvbench.cli._progress import follow

    def about(done: tuple[str, Any]) -> str:
        stage, record = done
        return f"{stage}: {record.point.kernel}, context {record.point.shape.context}"

    say_busy("taskset -c LIST")
    return follow(
        stages.measure(), lambda: stages.visits, lambda done: 1.0, about, lambda: stages.budget.left
    )
