"""kvbench lab"""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Annotated, Any

import click

from kvbench.cli._options import cpus_option, isa_option, json_option, threads_option
from kvbench.cli._streams import say, say_json
from kvbench.cli._types import Count, Named, Percent
from kvbench.errors import BadArgument
from kvbench.model.annotated import Printed, about

_SHARED = {"threads", "cpus", "isa", "seed", "out", "as_json"}


Value = float | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Printed):
    """What an experiment found. The keys of a row are the experiment's own: gbps are GB/s, times and shares ratios."""

    experiment: Annotated[str, about("its name")]
    asked: Annotated[dict[str, Value], about("what was asked of it, or taken where nothing was, by option")]
    seconds: Annotated[float, about("seconds: how long the experiment took, all of it by the wall")]
    sentence: Annotated[str, about("what the rows answer to its question")]
    notes: Annotated[tuple[str, ...], about("what that rests on")]
    rows: Annotated[tuple[dict[str, Value], ...], about("what was found, as NAME.csv has it")]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One that kvbench lab is called with."""

    name: Annotated[str, about("what kvbench lab is called with")]
    about: Annotated[str, about("its question")]
    takes: Annotated[dict[str, Value], about("by option, what is taken where nothing is asked for")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiments(Printed):
    """All experiments; printed without a name."""

    experiments: Annotated[tuple[Experiment, ...], about("all there are")]


@click.command("lab")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--model", help="A model of suites/models.toml: its heads and layers.")
@click.option("--context", type=Count(1), help="Tokens in every sequence, or in the longest.")
@click.option("--dtype", help="Number format of the cache.")
@click.option("--layout", help="Layout of the cache.")
@click.option("--window", type=Count(1), help="Attend only to this many of the last tokens.")
@click.option("--cold", type=Percent(), help="Share of the cache that is offloaded, such as 25%.")
@threads_option
@cpus_option
@isa_option
@click.option("--seed", default=1, show_default=True, type=Count(0), help="Seed of all that is drawn at random.")
@click.option(
    "--out",
    type=Named(file_okay=False),
    default=Path("runs", "lab"),
    show_default=True,
    help="Folder for NAME.csv, NAME.svg and NAME.png.",
)
@json_option
def command(name: str | None, **asked: Any) -> None:
    """Run the experiment NAME, in a minute or less.

    It prints a table and one sentence that answers its question, and draws a figure. Without NAME, list the experiments
    with their questions and options.
    """
    from kvbench.lab import find

    if name is None:
        if asked["as_json"]:
            say_json(Experiments(experiments=_experiments()))
        else:
            say(_listed())
        return
    experiment = find(name)
    options = {key: value for key, value in asked.items() if key not in _SHARED and value is not None}
    _refuse_what_it_does_not_take(name, options, _takes(experiment))
    _refuse_unknown_words(options)
    with _folder(asked["out"]):
        setup = _setup(asked)
        start = perf_counter()
        found = experiment(setup, **options)
        seconds = perf_counter() - start
        _write(found, asked["out"])
    facts = _takes(experiment) | options | _scene(setup)
    if asked["as_json"]:
        say_json(
            Found(
                experiment=name,
                asked=facts,
                seconds=seconds,
                sentence=found.sentence,
                notes=tuple(found.notes),
                rows=tuple(json.loads(found.table.to_json(orient="records", double_precision=15))),
            )
        )
    else:
        say("\n".join(_text(name, facts, found, seconds, asked["out"])))


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """It can be written, before anybody waits for what shall be; and is gone again where nothing came of it."""
    from kvbench.store.files import writing

    new = [each for each in (path, *path.parents) if not each.exists()]
    try:
        with writing(path, "then run it again"):
            path.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=path).close()
        yield
    finally:
        for each in new:
            with suppress(OSError):  # it is not empty
                each.rmdir()


def _refuse_what_it_does_not_take(name: str, options: dict[str, Any], takes: dict[str, Any]) -> None:
    for key in options.keys() - takes.keys():
        others = ", ".join(f"--{other}" for other in takes) or "no option of its own"
        raise BadArgument(f"lab {name} takes no --{key}", f"it takes {others}")


def _takes(experiment: Any) -> dict[str, Any]:
    """What may be asked of it, with its defaults."""
    parameters = inspect.signature(experiment).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def _experiments() -> tuple[Experiment, ...]:
    from kvbench.lab import about as question
    from kvbench.lab import find, names

    return tuple(Experiment(name, question(name), _takes(find(name))) for name in names())


def _listed() -> str:
    lines = []
    for each in _experiments():
        takes = ", ".join(f"--{key}" if value is None else f"--{key} {value}" for key, value in each.takes.items())
        lines += [f"{each.name:<13}{each.about}"] + ([f"{'':<13}  {takes}"] if takes else [])
    return "\n".join(lines)


def _refuse_unknown_words(options: dict[str, Any]) -> None:
    from kvbench.native import default_library

    for kind in options.keys() & {"dtype", "layout"}:
        default_library().number(kind, options[kind])


def _setup(asked: dict[str, Any]) -> Any:
    from kvbench.lab import Setup
    from kvbench.machine import describe
    from kvbench.machine.placement import place
    from kvbench.native import default_library

    machine, library = describe(), default_library()
    return Setup(
        machine=machine,
        library=library,
        cpus=place(machine, asked["cpus"], asked["threads"]),
        isa=library.isa(asked["isa"]),
        seed=asked["seed"],
        folder=asked["out"],
    )


def _scene(setup: Any) -> dict[str, Any]:
    from kvbench.units import cpu_text

    return {"isa": setup.isa, "threads": len(setup.cpus), "cpus": cpu_text(setup.cpus), "seed": setup.seed}


def _write(found: Any, folder: Path) -> None:
    from kvbench.report.write import write_figure

    write_figure(folder, found.figure, found.table)


def _text(name: str, facts: dict[str, Any], found: Any, seconds: float, folder: Path) -> list[str]:
    from kvbench.report.ruled import ruled
    from kvbench.texts import wrapped
    from kvbench.units import duration

    asked = ", ".join(f"{key} {value}" for key, value in facts.items() if value is not None)
    return [
        f"{name}: {found.figure.title}",
        *wrapped([f"{asked}; {duration(seconds)} in all"]),
        "",
        *(f"  {line}" for line in ruled(found.table, found.columns)),
        "",
        *wrapped(found.notes),
        f"  {folder / name}.csv, .svg and .png",
        "",
        *wrapped([found.sentence], ""),
    ]
