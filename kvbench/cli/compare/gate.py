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

_AXES = ("context", "dtype", "threads")  # axes of an engine's points
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
        "kvbench gate": "Compare the working tree with the last commit.",
        "kvbench gate --base origin/main --export junit=gate.xml": "Compare with a branch, for CI.",
        "kvbench gate --engine ggml --base a/libggml.so --head b/libggml.so": (
            "Compare two builds of llama.cpp's library."
        ),
    },
)
@click.option(
    "--base",
    default="HEAD",
    show_default=True,
    metavar="REV|LIB|WHEEL",
    help="A git revision, a library or a wheel. With --engine: its library, or a Python with it.",
)
@click.option(
    "--head",
    default=".",
    show_default=True,
    metavar="REV|LIB|WHEEL|.",
    help="As --base; . means the working tree.",
)
@click.option(
    "--suite",
    help=("Name of a suite, or a path that ends in .toml. [default: gate; with --engine: engine]"),
)
@only_option
@click.option(
    "--budget",
    type=TIME,
    default="4m",
    show_default=True,
    help=(
        "Time for measuring, such as 90s or 4m, with the launches that confirm a change. When it is"
        " over, measuring stops, even within a launch. Building does not count."
    ),
)
@click.option(
    "--seed", type=Count(0), help="Seed of the random order of both sides. [default: random]"
)
@isa_option
@plugin_option
@click.option(
    "--every",
    is_flag=True,
    help="Measure all points, also those with the same code on both sides.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Compare two builds of another engine, such as ggml.",
)
@click.option(
    "--model", help="With --engine: models whose heads to measure. [default: the suite's]"
)
@with_options(*(same(name, "the suite's") for name in _AXES))
@click.option(
    "--source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Checkout of another project. BASE and HEAD are then its revisions, or . as it stands.",
)
@click.option(
    "--build",
    metavar="CMD",
    help="With --source: shell command that builds each revision, in its own git worktree.",
)
@click.option(
    "--product",
    metavar="PATH",
    help="With --source: the library that CMD makes. Without --engine it is used as a plug-in.",
)
@click.option(
    "--out", type=Named(file_okay=False), help="Folder to keep the timings of every pair in."
)
@export_option
@json_option
def command(
    base: str, head: str, budget: float, out: Path | None, as_json: bool, **asked: Any
) -> int:
    """Build the kernels of BASE and HEAD, and say whether HEAD is slower or faster.

    Both builds are measured in turn in the same processes. Points whose code is the same on both
    sides are not measured; comments do not count as code. A change counts only if fresh launches
    confirm it. The exit code tells the verdict.

    With --engine, BASE and HEAD are two builds of another engine, each in a process of its own.
    With --source, BASE and HEAD are two revisions of another project, which --build builds.
    """
    from kvbench.gate import gate
    from kvbench.machine import available_memory

    exported = [wanted(word, as_json) for word in asked.pop("exports")]
    available_memory()  # refuses at once if nothing can be measured; building takes minutes
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
    """The two sides to compare. `owned`: builds and copies are deleted when it closes."""
    from kvbench.gate.checkout import products, same
    from kvbench.gate.rivals import unchanged
    from kvbench.leftovers import scratch

    if any((source, build, product)) and not all((source, build, product)):
        raise BadArgument(
            "--source, --build and --product go together",
            "give a checkout, the command that builds it, and the library that it makes",
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
    """Refuse options of the other kind of gate, before anything is built."""
    from kvbench.peers.known import entries

    engine = asked["engine"]
    if engine is None:
        if wrong := _named(asked, _OF_ENGINES):
            raise BadArgument(
                f"{wrong} works with --engine only: a gate of kernels measures its suite's points",
                "pick points with --only, or name an engine with --engine",
            )
        return
    if engine not in entries():
        raise unknown_word("--engine", engine, entries())
    if wrong := _named(asked, _OF_KERNELS):
        raise BadArgument(f"{wrong} works with our kernels only, not with --engine", "leave it out")


def _named(asked: dict[str, Any], options: tuple[str, ...]) -> str:
    return " ".join(f"--{name}" for name in options if asked[name])


def _kernels(base: str, head: str, folder: Path, built: Any, **asked: Any) -> Any:
    """Two builds of kernels as sides. `built`: two plug-ins built from another project's checkout;
    None without --source.
    """
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
    """Two builds of another engine as sides. `built`: its two libraries, as in _kernels()."""
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
