"""Every figure of a report, in its order: the numbers as a table, and how they are drawn."""

import kvbench.report.figures.quietly  # noqa: F401  # before anything else loads Matplotlib
from kvbench.analysis.means.findings import Findings
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.hero import hero
from kvbench.report.figures.l3 import l3
from kvbench.report.figures.look import Look
from kvbench.report.figures.noise import noise
from kvbench.report.figures.roofline import rooflines
from kvbench.report.figures.saturation import saturation
from kvbench.report.figures.staircase import staircase
from kvbench.report.figures.stores import stores
from kvbench.report.figures.tails import tails


def every(found: Findings) -> list[Figure]:
    look = Look(found.points)
    first = [draw(found, look) for draw in (hero, staircase, l3, saturation)]
    return [*first, *rooflines(found, look), *(draw(found, look) for draw in (stores, tails, noise))]
