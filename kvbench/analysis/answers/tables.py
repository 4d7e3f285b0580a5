"""The input of all answers: the records of one run and its tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kvbench.model import Ceiling, Machine, Record
from kvbench.model.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Tables:
    """Records and tables of one run.

    points: our points, with short names. tokens: their tokens per second. most: launches that the
    run can have, if launches are added until questions are decided; else 0.
    """

    records: Sequence[Record]
    machine: Machine
    ceilings: Sequence[Ceiling]
    models: Sequence[Geometry]
    points: pd.DataFrame
    tokens: pd.DataFrame
    contrasts: pd.DataFrame
    cpus: dict[str, tuple[int, ...]]  # by the name of a point
    most: int = 0

    @property
    def line(self) -> pd.DataFrame:
        """The fastest kernel of each dtype, timed in the same rounds; empty if none were."""
        return self.points[self.points["beside"].fillna(False).astype(bool)]
