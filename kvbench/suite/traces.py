"""Lengths of requests as somebody has met them: drawn from a table of suites/traces/."""

import random
import tomllib
from functools import cache
from pathlib import Path

import kvbench
from kvbench.errors import BadLibrary

TRACE, MEAN, LONGEST = "trace", "trace-mean", "trace-longest"  # what a batch has of a draw
_TABLE = Path("suites", "traces", "azure-chat-2023.toml")


@cache
def table() -> tuple[int, ...]:
    """Tokens that a sequence holds in a decode step: each is as likely as the others."""
    for folder in kvbench.__path__:
        if (path := Path(folder) / _TABLE).is_file():
            return tuple(tomllib.loads(path.read_text())["tokens"])
    raise BadLibrary(f"{_TABLE} is not installed", "install kvbench again: pip install .")


def drawn(seed: int, batch: int) -> tuple[int, ...]:
    """Tokens of each sequence. A larger batch of a seed begins with the smaller one."""
    every, numbers = table(), random.Random(seed)
    return tuple(every[int(numbers.random() * len(every))] for _ in range(batch))
