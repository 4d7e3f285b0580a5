"""kvbench lab"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import click

from kvbench.cli._options import cpus_option, isa_option, json_option, threads_option
from kvbench.cli._streams import tell
from kvbench.cli._types import Count, Named
from kvbench.errors import BadArgument, unknown_word
from kvbench.model.annotated import Printed, about
from kvbench.units import cpu_text, duration

_SHARED = {"threads", "cpus", "isa", "seed"}
_AGAIN = "then run it again"


Value = float | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Printed):
    """What an experiment found. The keys of a row are the experiment's own: gbps are GB/s, times
    and shares ratios.
    """

    experiment: Annotated[str, about("its name")]
    asked: Annotated[
        dict[str, Value], about("what was asked of it, or taken where nothing was, by option")
    ]
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
@click.option(
    "--model", help="A name of suites/models.toml, a config.json or its folder, or a .gguf."
)
@click.option("--context", type=Count(1), help="Tokens in every sequence, or in the longest.")
@click.option("--dtype", help="Number format of the cache.")
@click.option("--layout", help="Layout of the cache.")
@click.option("--window", type=Count(1), help="Attend only to this many of the last tokens.")
@threads_option
@cpus_option
@isa_option
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=Count(0),
    help="Seed of all that is drawn at random.",
)
@click.option(
    "--out",
    type=Named(file_okay=False),
    default="runs/lab",
    show_default=True,
    help="Folder for NAME.csv.",
)
@json_option
def command(name: str | None, out: Path, as_json: bool, **asked: Any) -> None:
    """Run the experiment NAME, in a minute or less.

    It prints a table and one sentence that answers its question. Without NAME, list the experiments
    with their questions and options.
    """
    from kvbench.lab.experiment import NAMES
    from kvbench.report.data import rows_of
    from kvbench.store import write_text
    from kvbench.store.files import refuse_output, writing
    from kvbench.texts import table_csv

    if name is None:
        known = tuple(_described(each) for each in NAMES)
        tell(Experiments(experiments=known), as_json, lambda: map(_line, known))
        return
    if name not in NAMES:
        raise unknown_word("NAME", name, NAMES)
    options = {
        key: value for key, value in asked.items() if key not in _SHARED and value is not None
    }
    takes, path = _described(name).takes, out / f"{name}.csv"
    _refuse(name, options, takes)
    refuse_output(path, _AGAIN)
    setup, start = _setup(asked), perf_counter()
    found = _experiment(name)(setup, **options)
    seconds = perf_counter() - start
    with writing(path, _AGAIN):
        write_text(path, table_csv(found.table), asked=True)
    facts = (
        takes
        | options
        | {
            "isa": setup.isa,
            "threads": len(setup.cpus),
            "cpus": cpu_text(setup.cpus),
            "seed": setup.seed,
        }
    )
    rows = tuple(rows_of(found.table))
    told = {"experiment": name, "asked": facts, "seconds": seconds, "sentence": found.sentence}
    shown = Found(**told, notes=tuple(found.notes), rows=rows)
    tell(shown, as_json, lambda: _text(name, facts, found, seconds, path))


def _experiment(name: str) -> Callable[..., Any]:
    return import_module(f"kvbench.lab.{name}").experiment


def _described(name: str) -> Experiment:
    """What may be asked of it, with its defaults."""
    parameters = inspect.signature(_experiment(name)).parameters.values()
    question = (import_module(f"kvbench.lab.{name}").__doc__ or "").partition("\n")[0]
    return Experiment(
        name, question, {p.name: p.default for p in parameters if p.default is not p.empty}
    )


def _line(each: Experiment) -> str:
    takes = ", ".join(f"--{key} {value}" for key, value in each.takes.items())
    return f"{each.name:<13}{each.about}\n{'':<13}  {takes}"


def _refuse(name: str, options: dict[str, Any], takes: dict[str, Any]) -> None:
    """Options that it does not take, and words that the library does not know."""
    from kvbench.native import default_library

    for key in options.keys() - takes.keys():
        raise BadArgument(
            f"lab {name} takes no --{key}", f"it takes {', '.join(f'--{other}' for other in takes)}"
        )
    for kind in options.keys() & {"dtype", "layout"}:
        default_library().number(kind, options[kind])


def _setup(asked: dict[str, Any]) -> Any:
    from kvbench.lab.experiment import Setup
    from kvbench.machine import describe
    from kvbench.machine.placement import place
    from kvbench.native import default_library

    machine, library = describe(), default_library()
    cpus, isa = place(machine, asked["cpus"], asked["threads"]), library.isa(asked["isa"])
    return Setup(machine, library, cpus, isa, asked["seed"])


def _text(name: str, facts: dict[str, Any], found: Any, seconds: float, path: Path) -> list[str]:
    from kvbench.report.ruled import ruled
    from kvbench.texts import wrapped

    asked = ", ".join(f"{key} {value}" for key, value in facts.items())
    return [
        *wrapped([f"{name}: {asked}; {duration(seconds)} in all"], ""),
        "",
        *(f"  {line}" for line in ruled(found.table, found.columns)),
        "",
        *wrapped(found.notes),
        f"  {path}",
        "",
        *wrapped([found.sentence], ""),
    ]
