"""Words for the engines that a run measures: `ggml`; or for two builds of it, `ggml@old` and
`ggml@new`. A build is a library, an interpreter that the engine is installed for, or both.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from kvbench.errors import BadArgument

AT = "@"
_PYTHON = "bin/python"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")  # not allowed in a point's name


@dataclass(frozen=True, slots=True)
class Build:
    """`path` of a library, `python` of an interpreter; empty means the engine's own package, or
    this interpreter.
    """

    path: str = ""
    python: str = ""


def engine_of(text: str) -> str:
    """The engine's name, `ggml`, from `ggml@old` or `ggml@old=/x/libggml.so`."""
    return text.partition("=")[0].partition(AT)[0]


def build_of(word: str, paths: Mapping[str, str], pythons: Mapping[str, str]) -> Build:
    """The build of a word, from a plan's paths of libraries and interpreters by word."""
    return Build(paths.get(word, ""), pythons.get(word, ""))


def build_at(asked: str, hint: str) -> Build:
    """The build at a path. `asked`: a library, an interpreter, or the folder that holds
    bin/python.
    """
    path = Path(asked)
    if not path.exists():
        raise BadArgument(f"{asked} is neither a library nor an interpreter", hint)
    if (path / _PYTHON).exists():
        path = path / _PYTHON
    if path.name.startswith("python"):
        return Build(python=str(path.absolute()))
    return Build(path=str(path.absolute()))


def builds(
    engines: Iterable[str], paths: Sequence[str] = (), pythons: Sequence[str] = ()
) -> dict[str, Build]:
    """Builds by word. `paths` and `pythons`: "ggml=/old/libggml.so", or with a label
    "ggml@old=/x/libggml.so". An engine with two libraries (or interpreters) has two words; a single
    interpreter (or library) serves both.
    """
    known = [_named(paths, "library"), _named(pythons, "interpreter")]
    found: dict[str, Build] = {}
    engines = [*engines]
    for engine in {**known[0], **known[1]}:
        if engine not in engines:
            raise BadArgument(
                f"a build of {engine} is given, but {engine} is left out", "ask for both"
            )
    for engine in engines:
        own = [named.get(engine, {"": ""}) for named in known]
        if all(len(each) > 1 for each in own) and own[0].keys() != own[1].keys():
            raise BadArgument(
                f"{engine} has several libraries and several interpreters",
                f"pair them with labels: {engine}{AT}LABEL=PATH, with one label for both",
            )
        for path, python in product(*own):
            if path and python and path != python:
                continue
            label = path or python
            word = f"{engine}{AT}{label}" if label else engine
            found[word] = Build(own[0][path], own[1][python])
    return found


def absolute_path(text: str) -> str:
    """Make the path in "ggml=x.so" absolute, because a run may be resumed from another folder.
    Links are not followed: an interpreter's folder decides which packages it has.
    """
    word, equals, path = text.partition("=")
    return f"{word}={Path(path).absolute()}" if equals and path else text


def _named(texts: Sequence[str], what: str) -> dict[str, dict[str, str]]:
    """Paths by engine and label. The label is empty if an engine has one path without a label."""
    asked: dict[str, list[tuple[str, str]]] = {}
    for text in texts:
        word, equals, path = text.partition("=")
        engine, _, label = word.partition(AT)
        if not (engine and equals and path):
            raise BadArgument(f"{text[:60]!r} names no {what}", "ENGINE=PATH, such as ggml=/x.so")
        asked.setdefault(engine, []).append((label, path))
    found = {}
    for engine, own in asked.items():
        made = iter(labels([path for label, path in own if not label]))
        named = {label or next(made): path for label, path in own}
        if len(named) < len(own):
            raise BadArgument(f"{engine}: two builds share a label", f"{engine}{AT}LABEL=PATH")
        found[engine] = named
    return found


def labels(paths: Sequence[str]) -> list[str]:
    """Labels that tell files apart: empty for a single file, else their stems, or else the nearest
    folders whose names all differ.
    """
    if len(paths) < 2:
        return [""] * len(paths)
    parts = [Path(path).parts[::-1] for path in paths]
    for place in range(min(map(len, parts))):
        names = [_ODD.sub("-", own[place]) for own in parts]
        if place == 0:
            names = [name.partition(".")[0] or name for name in names]
        if len({*names}) == len(names):
            return names
    raise BadArgument(
        f"nothing tells these builds apart: {', '.join(paths)}", f"ENGINE{AT}LABEL=PATH"
    )
