"""A table as lines of a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `name`: of the DataFrame's column. `head`: text above it. `write`: turns
    a value into text.
    """

    name: str
    head: str
    write: Callable[[Any], str] = str


def ruled(table: pd.DataFrame, columns: Sequence[Column]) -> list[str]:
    """The table as lines: numbers aligned right, words left, unknown values blank."""
    drawn = []
    for column in columns:
        values = table[column.name]
        cells = [column.head, *("" if pd.isna(value) else column.write(value) for value in values)]
        pad = str.rjust if pd.api.types.is_numeric_dtype(values) else str.ljust
        width = max(map(len, cells))
        drawn.append([pad(cell, width) for cell in cells])
    return ["  ".join(line).rstrip() for line in zip(*drawn, strict=True)]
