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
    drawn = []
    for column in columns:
        values = table[column.name]
        cells = [column.head, *("" if pd.isna(value) else column.write(value) for value in values)]
        pad = str.rjust if pd.api.types.is_numeric_dtype(values) else str.ljust
        width = max(map(len, cells))
        drawn.append([pad(cell, width) for cell in cells])
    return ["  ".join(line).rstrip() for line in zip(*drawn, strict=True)]
