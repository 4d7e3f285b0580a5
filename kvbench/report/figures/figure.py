"""A figure: the numbers that it shows, how it is drawn, and how it is to be read."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.report.figures.look import styled


@dataclass(frozen=True, slots=True)
class Figure:
    """`table` has every number that is drawn, and becomes a CSV file. Without rows `missing` says why there are none.

    `about` tells how to read it, and what every percentage is a share of.
    """

    name: str  # of its files
    title: str
    about: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Canvas]
    missing: str = ""

    def canvas(self) -> Canvas:
        with styled():
            return self.draw(self.table)
