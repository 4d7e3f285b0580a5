"""A comparison in the forms that other tools read. Each is one function from a Comparison to text."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kvbench.errors import unknown_word
from kvbench.exports import annotations, junit, markdown, numbers
from kvbench.exports.sound import sound
from kvbench.model import Comparison
from kvbench.store import write_text
from kvbench.store.files import writing

_FORMS: dict[str, Callable[[Comparison], str]] = {
    "markdown": partial(markdown.fitted, limit=markdown.SUMMARY),
    "comment": partial(markdown.fitted, limit=markdown.COMMENT),
    "junit": junit.junit,
    "annotations": annotations.annotations,
    "github-bigger": partial(numbers.github, unit="GB/s", name="head_gbps", times=1.0),
    "github-smaller": partial(numbers.github, unit="ns", name="head_seconds", times=1e9),
    "bencher": numbers.bencher,
    "csv": numbers.table,
}


def kinds() -> tuple[str, ...]:
    return tuple(_FORMS)


def write(comparison: Comparison, kind: str, path: Path | str | None = None) -> str:
    """The text; where a path is given, it takes the place of that file in one step, or goes to that pipe or device."""
    if kind not in _FORMS:
        raise unknown_word("export", kind, kinds())
    text = _FORMS[kind](sound(comparison))
    if path is not None:
        with writing(Path(path), "then compare again"):
            write_text(Path(path), text, asked=True)
    return text
