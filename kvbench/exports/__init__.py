"""A comparison in the forms that other tools read. Each is one function from a Comparison to text."""

import os
from collections.abc import Callable
from pathlib import Path

from kvbench.errors import Unwritable, unknown_word
from kvbench.exports import annotations, bencher, github, junit, markdown, otava, prometheus, table
from kvbench.exports.sound import sound
from kvbench.model import Comparison

_FORMS: dict[str, Callable[[Comparison], str]] = {
    "markdown": markdown.summary,
    "comment": markdown.comment,
    "junit": junit.junit,
    "annotations": annotations.annotations,
    "github-bigger": github.bigger,
    "github-smaller": github.smaller,
    "bencher": bencher.bencher,
    "otava-csv": otava.row,
    "otava-yaml": otava.config,
    "prometheus": prometheus.prometheus,
    "csv": table.table,
}


def kinds() -> tuple[str, ...]:
    return tuple(_FORMS)


def write(comparison: Comparison, kind: str, path: Path | str | None = None) -> str:
    """The text; where a path is given, it takes the place of that file in one step."""
    if kind not in _FORMS:
        raise unknown_word("export", kind, kinds())
    text = _FORMS[kind](sound(comparison))
    if path is not None:
        _put(Path(path), text.encode())
    return text


def _put(path: Path, content: bytes) -> None:
    try:
        path = path.resolve()  # the file behind a link, not the link, is replaced
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(content)
        else:
            _replace(path, content)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}", "name another file, or make room") from None


def _replace(path: Path, content: bytes) -> None:
    """Its name while it is written ends so that no collector of .prom files takes it for whole."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
