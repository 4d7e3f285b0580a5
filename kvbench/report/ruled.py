"""A table as lines of a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True, slots=True)
class Column:
    """Where its values are, what stands above them, and how one is written."""

    name: str
    head: str
    write: Callable[[Any], str] = str


def ruled(table: pd.DataFrame, columns: Sequence[Column]) -> list[str]:
    """Numbers stand to the right, words to the left; what is not known is left blank."""
    texts = [[column.head, *map(_writer(column), table[column.name])] for column in columns]
    right = [pd.api.types.is_numeric_dtype(table[column.name]) for column in columns]
    widths = [max(map(len, cells)) for cells in texts]
    return ["  ".join(map(_padded, cells, widths, right)).rstrip() for cells in zip(*texts, strict=True)]


def _writer(column: Column) -> Callable[[Any], str]:
    return lambda value: "" if pd.isna(value) else column.write(value)


def _padded(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
