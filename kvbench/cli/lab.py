"""kvbench lab"""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any

import click

from kvbench.cli._options import cpus_option, isa_option, json_option, threads_option
from kvbench.cli._path import Named
from kvbench.cli._share import Share
from kvbench.cli._streams import say
from kvbench.errors import BadArgument

_SHARED = {"threads", "cpus", "isa", "seed", "out", "as_json"}


@click.command("lab")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--model", help="Geometry of a model of suites/models.toml.")
@click.option("--context", type=click.IntRange(1), help="Tokens that every sequence holds, or the most of them.")
@click.option("--dtype", help="Number format of the cache.")
@click.option("--layout", help="Layout of the cache.")
@click.option("--window", type=click.IntRange(1), help="Attend to the last so many tokens.")
@click.option("--cold", type=Share(), help="Share of the cache that lies elsewhere, such as 25%.")
@threads_option
@cpus_option
@isa_option
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Of the orders, lengths and numbers that it draws.",
)
@click.option(
    "--out",
    type=Named(file_okay=False),
    default=Path("runs", "lab"),
    show_default=True,
    help="The folder of NAME.csv, NAME.svg and NAME.png.",
)
@json_option
def command(name: str | None, **asked: Any) -> None:
    """Run the experiment NAME: a table, a figure, and one sentence that says what it shows. Each takes a minute or less.

    Without NAME, list them with the question of each and what may be asked of it.
    """
    from kvbench.lab import find

    if name is None:
        say(_listed() if not asked["as_json"] else json.dumps({"version": 1, "experiments": _facts()}))
        return
    experiment = find(name)
    options = {key: value for key, value in asked.items() if key not in _SHARED and value is not None}
    _refuse_what_it_does_not_take(name, options, _takes(experiment))
    _refuse_unknown_words(options)
    with _folder(asked["out"]):
        scene = _asked(asked)
        start = perf_counter()
        found = experiment(scene, **options)
        seconds = perf_counter() - start
        _write(found, asked["out"])
    facts = _takes(experiment) | options | _scene(scene)
    if asked["as_json"]:
        say(_json(name, facts, found, seconds))
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


def _facts() -> list[dict[str, Any]]:
    from kvbench.lab import about, find, names

    return [{"name": name, "about": about(name), "takes": _takes(find(name))} for name in names()]


def _listed() -> str:
    lines = []
    for facts in _facts():
        takes = ", ".join(f"--{key}" if value is None else f"--{key} {value}" for key, value in facts["takes"].items())
        lines += [f"{facts['name']:<13}{facts['about']}"] + ([f"{'':<13}  {takes}"] if takes else [])
    return "\n".join(lines)


def _refuse_unknown_words(options: dict[str, Any]) -> None:
    from kvbench.native import default_library

    for kind in options.keys() & {"dtype", "layout"}:
        default_library().number(kind, options[kind])


def _asked(asked: dict[str, Any]) -> Any:
    from kvbench.lab import Asked
    from kvbench.machine import describe
    from kvbench.machine.placement import place
    from kvbench.native import default_library

    machine, library = describe(), default_library()
    return Asked(
        machine=machine,
        library=library,
        cpus=place(machine, asked["cpus"], asked["threads"]),
        isa=library.isa(asked["isa"]),
        seed=asked["seed"],
        folder=asked["out"],
    )


def _scene(asked: Any) -> dict[str, Any]:
    from kvbench.units import cpu_text

    return {"isa": asked.isa, "threads": len(asked.cpus), "cpus": cpu_text(asked.cpus), "seed": asked.seed}


def _write(found: Any, folder: Path) -> None:
    from kvbench.report.write import write_figure

    write_figure(folder, found.figure, found.table if found.every is None else found.every)


def _text(name: str, facts: dict[str, Any], found: Any, seconds: float, folder: Path) -> list[str]:
    from kvbench.report.lines import wrapped
    from kvbench.report.ruled import ruled
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


def _json(name: str, facts: dict[str, Any], found: Any, seconds: float) -> str:
    said = {"sentence": found.sentence, "notes": list(found.notes), "rows": _rows(found.table)}
    behind = {} if found.every is None else {"every": _rows(found.every)}
    return json.dumps(
        {"version": 1, "experiment": name, "asked": facts, "seconds": seconds, **said, **behind},
        indent=2,
        ensure_ascii=False,
    )


def _rows(table: Any) -> list[dict[str, Any]]:
    return json.loads(table.to_json(orient="records", double_precision=15))
