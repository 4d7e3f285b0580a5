"""What every experiment is: a module beside this one, whose first line is the question, with a
function `experiment`.

Its keyword arguments are what may be asked for; their defaults are what it does when nothing is.
"""

from dataclasses import dataclass

import pandas as pd

from kvbench.errors import Refused
from kvbench.machine import available_memory
from kvbench.model import Machine
from kvbench.native import Library
from kvbench.report.ruled import Column
from kvbench.units import size

NAMES = ("quant", "users", "window")


@dataclass(frozen=True, slots=True)
class Setup:
    """What all experiments may use. `cpus`: one thread on each. `seed`: of what an experiment
    draws.
    """

    machine: Machine
    library: Library
    cpus: tuple[int, ...]
    isa: str
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """`table` has all that was found, `columns` what people read of it. The `sentence` is the
    answer to the question;
    `notes` say what it rests on.
    """

    table: pd.DataFrame
    columns: tuple[Column, ...]
    sentence: str
    notes: tuple[str, ...] = ()


def refuse_too_large(wanted: int) -> None:
    """Bytes, before any are allocated."""
    if wanted > (free := available_memory()):
        raise Refused(
            f"the experiment needs {size(wanted)} of memory, {size(free)} are free",
            "a smaller --model or --context",
        )
