"""What every experiment is: a module of its own, whose first line is the question, with a function `experiment`.

Its keyword arguments are what may be asked for; their defaults are what it does when nothing is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pandas as pd

from kvbench.errors import Refused, unknown_word
from kvbench.lab import experiments
from kvbench.machine import available_memory
from kvbench.model import Machine
from kvbench.native import Library
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.units import size


@dataclass(frozen=True, slots=True)
class Setup:
    """What all experiments may use. `cpus`: one thread on each. `folder`: where large files of theirs may lie for a
    while. `seed`: of what an experiment draws; caches that are timed alone hold the same numbers whatever it is."""

    machine: Machine
    library: Library
    cpus: tuple[int, ...]
    isa: str
    seed: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """`table` has all that was found, `columns` what people read of it. The `sentence` is the answer to the question;
    `notes` say what it rests on."""

    table: pd.DataFrame
    columns: tuple[Column, ...]
    figure: Figure
    sentence: str
    notes: tuple[str, ...] = ()


def refuse_too_large(wanted: int) -> None:
    """Bytes, before any are allocated."""
    if wanted > (free := available_memory()):
        raise Refused(
            f"the experiment needs {size(wanted)} of memory, {size(free)} are free", "a smaller --model or --context"
        )


def names() -> list[str]:
    return sorted(module.name for module in iter_modules(experiments.__path__))


def find(name: str) -> Callable[..., Outcome]:
    """Called with a Setup, and what it takes by keyword."""
    if name not in names():
        raise unknown_word("NAME", name, names())
    return _module(name).experiment


def about(name: str) -> str:
    """The question."""
    return (_module(name).__doc__ or "").partition("\n")[0]


def _module(name: str) -> ModuleType:
    return import_module(f"{experiments.__name__}.{name}")
