"""A comparison in the forms that other tools read. Each is one function from a Comparison to text."""

from collections.abc import Callable
from pathlib import Path

from kvbench.errors import Unwritable, unknown_word
from kvbench.exports import annotations, bencher, github, junit, markdown, otava, prometheus, table
from kvbench.exports.sound import sound
from kvbench.model import Comparison
from kvbench.store import write_text

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
        _put(Path(path), text)
    return text


def _put(path: Path, text: str) -> None:
    try:
        path = path.resolve()  # the file behind a link, not the link, is replaced
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(text.encode())
        else:
            write_text(path, text)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}", "name another file, or make room") from None
