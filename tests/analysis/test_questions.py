"""Runs of pure noise, and of a known effect, with launches added while questions are open."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, wilcoxon

from kvbench.analysis.bounds import CONFIRMED, REFUTED
from kvbench.analysis.contrasts import FASTER, SLOWER
from kvbench.analysis.findings import findings
from kvbench.analysis.looks import chance, needs
from kvbench.analysis.questions import open_questions
from tests.made_run import DECODE, MACHINE, MIB, RUN, visit

PLANNED, MOST = 7, 14
# ---- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [14, 20])
def test_all_looks_together_err_as_rarely_as_one(most):
    """scipy's signed ranks of launches without any effect: how often one of the looks says that there is one."""
    values = np.random.default_rng(most).laplace(size=(40_000, most))
    said = np.zeros(len(values), bool)
    for launches in range(2, most + 1):
        said |= wilcoxon(values[:, :launches], axis=1, alternative="greater", method="exact").pvalue <= chance(
            launches, most
        )
    assert binom.ppf(1e-4, len(said), 0.0093) <= said.sum() <= binom.ppf(0.9999, len(said), 0.01)


def test_what_many_looks_cost():
    """Seven on one side are shown by a single look and by the first of many; all the later ones ask for more."""
    assert 2**-7 <= chance(7, 14) < chance(7) == 0.01
    assert all(chance(n, 14) < 2**-7 for n in range(8, 15)) and all(chance(n, 14) < 2**-n for n in range(1, 7))


@pytest.mark.parametrize(
    ("row", "launches"),
    [
        ((1.10, 0.95, 1.27, 10), 24),  # half as wide as 0.145, and 0.095 from 1: (0.145 / 0.095)² times as many
        ((1.00, 0.90, 1.11, 10), 47),  # nothing, if within 5 %: (0.105 / 0.049)²
        ((1.50, 1.40, 1.60, 2), 7),  # fewer show nothing
        ((1.00, 0.96, 1.04, 10), None),
    ],
)
def test_needs(row, launches):
    assert needs(*row) == launches


# ---- whole runs ------------------------------------------------------------------------------------------------------


def of(context, **facts):
    return replace(DECODE, shape=replace(DECODE.shape, context=context, capacity=context), **facts)


HOT = [of(1000, residency="hot"), of(2000, residency="hot")]  # in L3; that of the second is three times memory
FAR = [of(n, layout=layout) for n in (1024, 4096) for layout in ("head", "paged", "position")]
FAR += [of(1024 * n, layout=layout) for n in (2, 3, 5, 6, 7, 8) for layout in ("head", "paged")]  # eight pairs
FAR += [of(1024, dtype=dtype) for dtype in ("bf16", "e4m3")]
LAYOUT, DTYPE = "Layout of the cache, decoding from memory", "Number format of the cache, decoding from memory"


def visited(rng, launch, part, point, faster):
    """Alike but for noise: a drift by 10 % over the run, of the visit, of a program in it, of each sample."""
    pace = 20 * math.exp(0.1 * (launch + part) / MOST) * rng.lognormal(0, 0.05)
    names = ("point", "twin", *(("core", "memory", "slice") if point in HOT else ()))
    times = {"core": 2.0, "slice": 3.0 if point == HOT[1] else 1.0, "point": faster.get(point, 1.0)}
    rates = {n: times.get(n, 1.0) * pace * rng.lognormal(0, 0.02) * rng.lognormal(0, 0.02, 3) for n in names}
    return visit(launch, rates, point, **({"walked": 9 * MIB, "layers": 1} if point in HOT else {}))


def measured(seed, faster={}, every=(*HOT, *FAR)):
    """A run to which launches are added as long as a question is open, of all points that are asked for."""
    rng, found = np.random.default_rng(seed), []
    for launch in range(MOST):
        left = open_questions(found, MACHINE, MOST) if launch >= PLANNED else ()
        names = {name for each in left for name in each.points}
        todo = [point for point in every if launch < PLANNED or point.name in names]
        for place, which in enumerate(rng.permutation(len(todo))):
            found.append(visited(rng, launch, place / len(todo), todo[which], faster))
    return findings(RUN, found, MACHINE, most=MOST)


def claims(found):
    """How many questions the run has, and how many of its words say that two sides differ; likewise of sentences."""
    words = [*found.points["l3"].replace("", None).dropna(), *found.overall["word"]]
    texts = [each.text for each in found.diagnosis if each.topic in ("l3", "layout", "dtype")]
    differ = [
        text
        for text in texts
        if "memory? Yes" in text
        or "memory? No," in text
        or text.startswith(
            tuple(
                f"{what}: {value} "
                for what in (LAYOUT, DTYPE)
                for value in ("head", "paged", "position", "f16", "bf16", "e4m3")
            )
        )
    ]
    return np.array(
        [len(words), sum(w in (CONFIRMED, REFUTED, FASTER, SLOWER) for w in words), len(texts), len(differ)]
    )


@pytest.mark.parametrize("runs", [10, pytest.param(1000, marks=pytest.mark.full)])
def test_noise_differs_in_nothing(runs):
    """Least of all because launches are added: one claim in fifty, of questions and of sentences."""
    questions, said, sentences, told = sum(claims(measured(seed)) for seed in range(runs))
    assert (questions, sentences) == (8 * runs, 3 * runs)
    assert said <= binom.ppf(0.999, questions, 0.02) and told <= binom.ppf(0.999, sentences, 0.02)
