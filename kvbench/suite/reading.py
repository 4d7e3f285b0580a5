"""Find and read suite files.

question = "What does the suite ask?"
launches = 3               # optional, as samples and sample_time: only if the defaults do not suit
contrasts = false          # time no points side by side
until_decided = 360        # seconds from the start within which launches are added while questions
                           # are open

[axes]                     # for every grid
model = "llama-3-8b"

[[grid]]                   # none, one or more, each with axes of its own
layout = "all"
context = ["0.5xL3", "256..64k x2"]

[[skip]]                   # leave out combinations that match every axis here
layout = "paged"
dtype = ["f32", "i8"]
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kvbench
from kvbench import named
from kvbench.errors import BadArgument
from kvbench.native import Library
from kvbench.suite.axes import AXES, read_axis, shown, unknown
from kvbench.suite.values import LIMITS, UNTIL, Axes, Suite

_FOLDER, _MODELS = "suites", "models.toml"
_NUMBERS = LIMITS | UNTIL
_KEYS = ("question", *_NUMBERS, "contrasts", "axes", "grid", "skip")


def shipped() -> dict[str, Path]:
    """The suites that come with the package, by name. In an editable install they lie apart from
    the Python files.
    """
    found: dict[str, Path] = {}
    for folder in kvbench.__path__:
        for path in sorted(Path(folder, _FOLDER).glob("*.toml")):
            if path.name != _MODELS:
                found.setdefault(path.stem, path)
    return found


def find(name: str, library: Library | None = None) -> Suite:
    """The suite of that name that comes with the package, or the suite at a path that ends in
    .toml. `library` has the words that it may use.
    """
    if name.endswith(".toml"):
        return load(Path(name), library=library)
    known = shipped()
    if name not in known:
        error = unknown(f"suite: {shown(name)}", name, sorted(known))
        raise BadArgument(error.args[0], f"{error.hint}; or a path that ends in .toml")
    return load(known[name], f"{_FOLDER}/{name}.toml", library)


def load(path: Path, source: str = "", library: Library | None = None) -> Suite:
    """Read a suite from a file. `source`: the name of the file in messages."""
    source = source or str(path)
    content = _content(path, source)
    for key in content:
        if key not in _KEYS:
            raise unknown(f"{source}: {_key(key)}", key, _KEYS, "is not a key of a suite")
    facts: dict[str, Any] = {
        key: _number(f"{source}: {key}", content[key], *limits)
        for key, limits in _NUMBERS.items()
        if key in content
    }
    if type(facts.setdefault("contrasts", content.get("contrasts", True))) is not bool:
        raise BadArgument(f"{source}: contrasts is {shown(facts['contrasts'])}", "true or false")
    question = _question(source, content.get("question"))
    common = _axes(f"{source}: axes", content.get("axes", {}), library)
    tables = list(_tables(source, "grid", content, library)) or [{}]
    grids = [{**common, **axes} for axes in tables]
    skips = list(_tables(source, "skip", content, library))
    if not all(skips):
        raise BadArgument(f"{source}: a [[skip]] matches everything", "name at least one axis")
    return Suite(path.stem, source, question, tuple(grids), tuple(skips), **facts)


def _content(path: Path, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(named.text(path, named.WRITTEN))
    except OSError as error:
        raise BadArgument(
            f"{source} cannot be read: {error.strerror}",
            "name a suite, see kvbench list suites, or a TOML file in UTF-8",
        ) from None
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:120]
        raise BadArgument(
            f"{source} is not valid TOML: {why}", 'keys are written as: dtype = "f16"'
        ) from None


def _question(source: str, found: Any) -> str:
    if (
        not isinstance(found, str)
        or not found.strip()
        or not found.isprintable()
        or len(found) > 500
    ):
        what = "is missing" if found is None else f"is {shown(found)}"
        raise BadArgument(
            f"{source}: question {what}", 'one line of text: question = "How fast is ...?"'
        )
    return found.strip()


def _number(where: str, value: Any, least: float, most: float) -> float:
    fits = isinstance(value, int if isinstance(least, int) else int | float) and not isinstance(
        value, bool
    )
    if not fits or not least <= value <= most:
        raise BadArgument(f"{where} is {shown(value)}", f"a number from {least:g} to {most:g}")
    return type(least)(value)


def _tables(
    source: str, key: str, content: dict[str, Any], library: Library | None
) -> Iterator[Axes]:
    tables = content.get(key, [])
    if not isinstance(tables, list):
        raise BadArgument(
            f"{source}: {key} is not a list of tables", f"write [[{key}]] above each table"
        )
    yield from (
        _axes(f"{source}: {key} {number}", table, library) for number, table in enumerate(tables, 1)
    )


def _axes(where: str, table: Any, library: Library | None) -> Axes:
    if not isinstance(table, Mapping):
        raise BadArgument(f"{where} is {shown(table)}", "a table of axes")
    for axis in table:
        if axis not in AXES:
            raise unknown(f"{where}: {_key(axis)}", axis, AXES, "is not an axis")
    return {
        axis: read_axis(f"{where}: {axis}", axis, value, library) for axis, value in table.items()
    }


def _key(text: str) -> str:
    """A key as messages quote it."""
    return shown(text).strip("'\"")
