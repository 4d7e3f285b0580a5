"""Sentences as lines of a terminal."""

import textwrap
from collections.abc import Iterable, Iterator

WIDTH = 120


def wrapped(sentences: Iterable[str], indent: str = "  ") -> Iterator[str]:
    """What is left of a sentence stands further in."""
    for sentence in sentences:
        yield from textwrap.wrap(sentence, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
