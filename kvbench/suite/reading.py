"""Suite files: where they are, and what they say.

# What the suite asks.
question = "What the suite asks."
launches = 3               # as samples and sample_time, only where the defaults do not suit
contrasts = false          # no points side by side: each by itself
until_decided = 360        # seconds of a run, within which launches are added while questions are open

[axes]                     # of every grid
model = "llama-3-8b"

[[grid]]                   # none, or many: axes of its own
layout = "all"
context = ["0.5xL3", "256..64k x2"]

[[skip]]                   # leaves out what matches all of it
layout = "paged"
dtype = ["f32", "i8"]
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kvbench
from kvbench import named
from kvbench.errors import BadArgument
from kvbench.native import Library
from kvbench.suite.axes import AXES, read_axis, shown, unknown
from kvbench.suite.values import LIMITS, UNTIL, Axes, Grid, Suite

_FOLDER, _MODELS = "suites", "models.toml"
_NUMBERS = LIMITS | UNTIL
_KEYS = ("question", *_NUMBERS, "contrasts", "axes", "grid", "skip")
_HEADER = re.compile(r"\s*(\[\[?)\s*[\"']?(\w+)[\"']?\s*\]")
_AT = re.compile(r"\s*\(at line (\d+), column \d+\)$")


def shipped() -> dict[str, Path]:
    """The suites that come with the package, by name. An editable install keeps them apart from the Python files."""
    found: dict[str, Path] = {}
    for folder in kvbench.__path__:
        for path in sorted(Path(folder, _FOLDER).glob("*.toml")):
            if path.name != _MODELS:
                found.setdefault(path.stem, path)
    return found


def find(name: str, library: Library | None = None) -> Suite:
    """A shipped suite by its name, or any other by a path that ends in .toml. `library`: whose words it may use."""
    if name.endswith(".toml"):
        return load(Path(name), library=library)
    known = shipped()
    if name not in known:
        error = unknown(f"suite: {shown(name)}", name, sorted(known))
        raise BadArgument(error.args[0], f"{error.hint}; or a path that ends in .toml")
    return load(known[name], f"{_FOLDER}/{name}.toml", library)


def load(path: Path, source: str = "", library: Library | None = None) -> Suite:
    """`source` is what messages call the file."""
    source = source or str(path)
    text = _text(path, source)
    return _Reader(source, text, _parsed(source, text), library).suite(path.stem)


def _text(path: Path, source: str) -> str:
    hint = "name a suite, see kvbench suites, or a TOML file in UTF-8"
    try:
        return named.text(path, named.WRITTEN)
    except OSError as error:
        raise BadArgument(f"{source} cannot be read: {error.strerror}", hint) from None


def _parsed(source: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = " ".join(str(error).split())
        at = _AT.search(message)
        line = int(at[1]) if at else text.count("\n") + 1 if "at end of document" in message else 1
        raise BadArgument(
            f"{source}:{line}: this is not valid TOML: {_AT.sub('', message)[:120]}",
            'keys are written as: dtype = "f16"',
        ) from None


class _Reader:
    """Reads one file's tables. Every complaint names the line."""

    def __init__(self, source: str, text: str, content: dict[str, Any], library: Library | None) -> None:
        self._source, self._lines, self._content, self._library = source, text.splitlines(), content, library

    def suite(self, name: str) -> Suite:
        for key in self._content:
            if key not in _KEYS:
                raise unknown(self._at("", 0, key), key, _KEYS, "is not a key of a suite")
        question = self._content.get("question")
        if not isinstance(question, str) or not question.strip() or not question.isprintable() or len(question) > 500:
            what = "is missing" if question is None else f"is {shown(question)}"
            raise BadArgument(
                f"{self._at('', 0, 'question')} {what}", 'one line of text: question = "How fast is ...?"'
            )
        facts: dict[str, Any] = {key: self._number(key) for key in _NUMBERS if key in self._content}
        if type(facts.setdefault("contrasts", self._content.get("contrasts", True))) is not bool:
            raise BadArgument(f"{self._at('', 0, 'contrasts')} is {shown(facts['contrasts'])}", "true or false")
        common = self._table("axes", 0, self._content.get("axes", {}))
        grids = tuple(self._tables("grid", common)) or (Grid(common, self._line("axes", 0) or 1),)
        return Suite(name, self._source, question.strip(), grids, tuple(self._tables("skip", {})), **facts)

    def _number(self, key: str) -> float:
        value, (least, most) = self._content[key], _NUMBERS[key]
        fits = isinstance(value, int if isinstance(least, int) else int | float) and not isinstance(value, bool)
        if not fits or not least <= value <= most:
            raise BadArgument(f"{self._at('', 0, key)} is {shown(value)}", f"a number from {least:g} to {most:g}")
        return type(least)(value)

    def _tables(self, key: str, common: Axes) -> Iterator[Grid]:
        tables = self._content.get(key, [])
        if not isinstance(tables, list):
            raise BadArgument(f"{self._at('', 0, key)} is no list of tables", f"write [[{key}]] over each of them")
        for index, table in enumerate(tables):
            axes = self._table(key, index, table)
            if key == "skip" and not axes:
                raise BadArgument(f"{self._at(key, index, '')} matches everything", "name at least one axis")
            yield Grid({**common, **axes}, self._line(key, index) or 1)

    def _table(self, key: str, index: int, table: Any) -> Axes:
        if not isinstance(table, Mapping):
            raise BadArgument(f"{self._at('', 0, key)} is {shown(table)}", f"a table of axes: [{key}] and lines below")
        for axis in table:
            if axis not in AXES:
                raise unknown(self._at(key, index, axis), axis, AXES, "is not an axis")
        return {
            axis: read_axis(self._at(key, index, axis), axis, value, self._library) for axis, value in table.items()
        }

    def _at(self, table: str, index: int, key: str) -> str:
        name = ".".join(filter(None, (table, shown(key).strip("'\""))))
        line = self._line(table, index, key)
        return f"{self._source}:{line}: {name}" if line else f"{self._source}: {name}"

    def _line(self, table: str, index: int, key: str = "") -> int:
        """The line of a key, by a look at the text, for tomllib does not tell; 0 where the text is written oddly."""
        current, seen, header = "", -1, 0
        name = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]") if key else None
        for number, line in enumerate(self._lines, 1):
            if found := _HEADER.match(line):
                current = found[2]
                seen += current == table
            inside = current == table and (seen == index or not table)
            header = header or number * bool(found and inside)
            if inside and name and name.match(line) or not table and found and found[2] == key:
                return number
        return header
