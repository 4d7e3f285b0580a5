"""What answers are made of: the records of one run and its tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kvbench.model import Ceiling, Machine, Record
from kvbench.model.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Tables:
    """`points`: of ours, with short names. `line`: the same columns, for the fastest kernel of each
    dtype as they were timed in the same rounds; empty where none were. `tokens`: tokens per second
    of points; `tokens_line`, of those of the line. `most`: launches that the run can have where
    some are added until questions are decided, else 0.
    """

    records: Sequence[Record]
    machine: Machine
    ceilings: Sequence[Ceiling]
    models: Sequence[Geometry]
    points: pd.DataFrame
    line: pd.DataFrame
    tokens: pd.DataFrame
    tokens_line: pd.DataFrame
    contrasts: pd.DataFrame
    cpus: dict[str, tuple[int, ...]]  # by the name of a point
    most: int = 0
