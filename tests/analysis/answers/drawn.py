"""Launches of the shipped runs, drawn again with replacement: runs that an equally noisy host might
give.

As a program it prints their grades: python -m tests.analysis.answers.drawn 200
"""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.trust import trust
from kvbench.analysis.limits import frames
from kvbench.grouping import grouped
from kvbench.model import Point
from kvbench.results import load

RESULTS = Path(__file__).parents[3] / "results"
SIZES = (7, 14, 20)


def kept():
    return {
        path.parent.name: load(path)
        for path in sorted(RESULTS.glob("*/quick"))
        if (path / "journal.jsonl").exists()
    }


def whole(run):
    """By launch, the records of points, for launches that visit every point."""
    visits = grouped((r.launch, r) for r in run.records if isinstance(r.point, Point))
    every = max(map(len, visits.values()))
    return [own for own in visits.values() if len(own) == every]


def drawn(launches, size, rng):
    """Draw this many launches. One that is drawn again gets a new number."""
    return [
        replace(record, launch=number)
        for number, place in enumerate(rng.integers(len(launches), size=size))
        for record in launches[place]
    ]


def grades(run, draws, seed=0):
    """The grades of each draw, by size."""
    rng, launches = np.random.default_rng(seed), whole(run)
    points = frames.points(run.records, run.machine).assign(short="")
    nothing = points.iloc[:0]
    asked = Tables((), run.machine, (), (), points, nothing, nothing, {})

    def grade(size):
        return trust(replace(asked, records=drawn(launches, size, rng))).grade

    return [tuple(map(grade, SIZES)) for _ in range(draws)]


def agreeing(run, draws):
    """The share of draws in which all sizes have the same grade."""
    return float(np.mean([len(set(each)) == 1 for each in grades(run, draws)]))


def main(draws):
    for name, run in kept().items():
        found = grades(run, draws)
        same = np.mean([len(set(each)) == 1 for each in found])
        shares = [
            f"{size}: {dict(Counter(own))}"
            for size, own in zip(SIZES, zip(*found, strict=True), strict=True)
        ]
        print(f"{name}: one grade in {same:.0%} of {draws} draws; {'; '.join(shares)}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
