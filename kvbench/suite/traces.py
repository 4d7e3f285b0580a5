"""Lengths of real requests, drawn from a table in suites/traces/."""

import random
import tomllib
from functools import cache
from pathlib import Path

import kvbench
from kvbench.errors import BadLibrary

# what a batch takes from a draw: the lengths as drawn, the mean for all, the longest for all
TRACE, MEAN, LONGEST = "trace", "trace-mean", "trace-longest"
_TABLE = Path("suites", "traces", "azure-chat-2023.toml")


@cache
def table() -> tuple[int, ...]:
    """Numbers of tokens that a sequence may hold in a decode step. All entries are equally
    likely.
    """
    for folder in kvbench.__path__:
        if (path := Path(folder) / _TABLE).is_file():
            return tuple(tomllib.loads(path.read_text())["tokens"])
    raise BadLibrary(f"{_TABLE} is not installed", "install kvbench again: pip install .")


def drawn(seed: int, batch: int) -> tuple[int, ...]:
    """Tokens of each sequence. For one seed, a larger batch begins with the smaller batch."""
    every, numbers = table(), random.Random(seed)
    return tuple(every[int(numbers.random() * len(every))] for _ in range(batch))
