"""Every figure of a report, in its order: the numbers as a table, and how they are drawn."""

from dataclasses import replace

import kvbench.report.figures.quietly  # noqa: F401  # before anything else loads Matplotlib
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.saturation import possible
from kvbench.model import OURS
from kvbench.report.figures.axes import axes
from kvbench.report.figures.between import between
from kvbench.report.figures.hero import hero
from kvbench.report.figures.l3 import l3
from kvbench.report.figures.latency import latency
from kvbench.report.figures.look import Figure, Look
from kvbench.report.figures.mixed import mixed
from kvbench.report.figures.numa import numa
from kvbench.report.figures.peers import models, peers
from kvbench.report.figures.roofline import roofline
from kvbench.report.figures.saturation import saturation
from kvbench.report.figures.serve import serve
from kvbench.report.figures.servers import servers
from kvbench.report.figures.speculate import speculate
from kvbench.report.figures.staircase import staircase
from kvbench.report.figures.stores import stores


def every(found: Findings, day: str = "") -> list[Figure]:
    """All figures of a run. `day`: the date of the run."""
    look = Look(found.points)
    beside = [
        draw(found, look)
        for draw, rows in (
            (mixed, found.answers.mixed.formats),
            (speculate, found.answers.speculation.lines),
            (latency, found.answers.latency.places),
            (serve, found.answers.serving.batches),
            (peers, found.peers),
            (numa, found.placed),
        )
        if len(rows)
    ]
    beside += models(found)
    found = replace(found, points=found.points[found.points["engine"] == OURS])
    threads = (saturation,) if possible(found) else ()
    drawn = (axes, servers, staircase, l3, between, *threads, stores)
    others = [own for draw in drawn if (own := draw(found, look))]
    return [hero(found, look), *beside, roofline(found, look, day), *others]
