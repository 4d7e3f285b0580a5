"""Ratios and whole runs that are pure noise, with launches added while questions are open."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, wilcoxon

from kvbench.analysis.differs.contrasts import two_sided
from kvbench.analysis.differs.questions import open_questions
from kvbench.analysis.judge import FASTER, SLOWER, paired
from kvbench.analysis.limits.claims import CONFIRMED, REFUTED, claim
from kvbench.analysis.looks import RATES, adjusted, chance, needs, outside
from kvbench.analysis.means.findings import findings
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Contrast
from kvbench.model.contrast import value
from tests.made_run import DECODE, MACHINE, MIB, RUN, visit

PLANNED, MOST = 7, 14


# ---- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [14, 20])
def test_all_looks_together_err_as_rarely_as_one(most):
    """Launches without an effect, tested by scipy's signed ranks: how often one of the looks says
    that there is one.
    """
    values = np.random.default_rng(most).laplace(size=(40_000, most))
    said = np.zeros(len(values), bool)
    for launches in range(2, most + 1):
        said |= wilcoxon(
            values[:, :launches], axis=1, alternative="greater", method="exact"
        ).pvalue <= chance(launches, most)
    assert binom.ppf(1e-4, len(said), 0.0093) <= said.sum() <= binom.ppf(0.9999, len(said), 0.01)


@pytest.mark.parametrize("most", [14, pytest.param(20, marks=pytest.mark.full)])
def test_an_adjusted_chance_is_one_at_any_look(most):
    """Launches without an effect, tested by scipy's signed ranks: the smallest adjusted chance of
    all looks is at most x in at most a share x of the cases, and in most of that share.
    """
    values = np.random.default_rng(most).laplace(size=(20_000, most))
    least = np.ones(len(values))
    for launches in range(2, most + 1):
        own = np.round(wilcoxon(values[:, :launches], axis=1, method="exact").pvalue, 12)
        by_chance = {each: adjusted(each, launches, most) for each in np.unique(own)}
        least = np.minimum(least, [by_chance[each] for each in own])
    for rate in (0.2, 0.05, 0.01):
        said = (least <= rate).sum()
        assert (
            binom.ppf(1e-4, len(values), rate / 2) <= said <= binom.ppf(0.9999, len(values), rate)
        )


def test_a_chance_of_a_single_look_is_itself():
    assert adjusted(0.0123, 7) == 0.0123
    assert adjusted(2 * 2**-20, 20, 20) == RATES[-1] and adjusted(0.9, 10, 14) == 1.0


def test_what_many_looks_cost():
    """Seven launches on one side are enough for a single look, and for the first of many; later
    looks need more.
    """
    assert 2**-7 <= chance(7, 14) < chance(7) == 0.01
    assert all(chance(n, 14) < 2**-7 for n in range(8, 15)) and all(
        chance(n, 14) < 2**-n for n in range(1, 7)
    )


@pytest.mark.parametrize(
    ("row", "launches"),
    [
        # half as wide as 0.145, and 0.095 from 1: (0.145 / 0.095)² times as many
        ((1.10, 0.95, 1.27, 10), 24),
        ((1.00, 0.90, 1.11, 10), 47),  # nothing, if within 5 %: (0.105 / 0.049)²
        ((1.50, 1.40, 1.60, 2), 7),  # fewer launches show nothing
        ((1.00, 0.96, 1.04, 10), None),
    ],
)
def test_needs(row, launches):
    assert needs(*row) == launches


# ---- ratios by launch ----------------------------------------------------------------------------


def contrast(logs, most):
    """Whether one point is said to be faster, in a single question, and how many launches it would
    take.
    """
    found = paired(logs, outside(len(logs), most))
    said = found.enclosed and adjusted(two_sided(found), len(logs), most) <= 0.05
    return said, None if said else needs(*np.exp(found[:3]), len(logs))


def from_l3(logs, most):
    """The same for a decode from L3 over reads of memory, where reads of the slice are three times
    as fast.
    """
    shares = {"memory": Estimate.of(list(np.exp(logs))), "core": Estimate.of([0.5] * len(logs))}
    found = PointRates({}, {}, shares, Estimate.of([3.0] * len(logs)))
    said = claim(found, "L3", most)
    return said.word in (CONFIRMED, REFUTED), said.launches


def asked(question, logs, most=MOST):
    """The verdict when no launch is added any more, and the number of launches."""
    for launches in range(PLANNED, MOST + 1):
        said, more = question(logs[:launches], most)
        if not more or more > 2 * MOST:
            break
    return said, launches


@pytest.mark.parametrize("question", [contrast, from_l3])
def test_a_thousand_runs_of_noise(question):
    """Five questions each, with launches that scatter by some per cent and have heavy tails. At
    most one in fifty is said to differ; before correction, one in twenty. Bounds of a single look
    would give more.
    """
    rng = np.random.default_rng(48)
    noise = rng.standard_t(4, (5000, MOST)) * rng.uniform(0.02, 0.08, (5000, 1))
    said, launches = np.transpose([asked(question, logs) for logs in noise])
    assert said.mean() <= {contrast: 0.05, from_l3: 0.02}[question] and set(launches) == set(
        range(PLANNED, MOST + 1)
    )
    assert np.mean([asked(question, logs, 0)[0] for logs in noise]) > said.mean()


@pytest.mark.parametrize("question", [contrast, from_l3])
def test_a_difference_ends_it_early(question):
    """Some end after the planned launches, some after a few more."""
    differ = 0.2 + np.random.default_rng(48).normal(0, 0.12, (50, MOST))
    said, launches = np.transpose([asked(question, logs) for logs in differ])
    assert said.mean() > 0.9 and set(launches[said > 0]) > {PLANNED, PLANNED + 3}


# ---- whole runs ----------------------------------------------------------------------------------


def of(context, **facts):
    return replace(DECODE, shape=replace(DECODE.shape, context=context, capacity=context), **facts)


# in L3; the second point reads three times as fast as memory
HOT = [of(1000, residency="hot"), of(2000, residency="hot")]
FAR = [of(n, layout=layout) for n in (1024, 4096) for layout in ("head", "paged", "position")]
# eight pairs
FAR += [of(1024 * n, layout=layout) for n in (2, 3, 5, 6, 7, 8) for layout in ("head", "paged")]
FAR += [of(1024, dtype=dtype) for dtype in ("bf16", "e4m3")]
BESIDE = Contrast("dtype", tuple(of(1024, dtype=dtype) for dtype in ("f16", "bf16", "e4m3")))


def visited(rng, launch, part, point):
    """Visits that are equal but for noise: a drift of 10 % over the run, and noise of the visit, of
    each program in it, and of each sample.
    """
    pace = 20 * math.exp(0.1 * (launch + part) / MOST) * rng.lognormal(0, 0.05)
    if point == BESIDE:
        words = [value(each, point.factor) for each in point.points]
        return visit(
            launch,
            {word: pace * rng.lognormal(0, 0.02) * rng.lognormal(0, 0.02, 3) for word in words},
            point,
        )
    names = ("point", "twin", *(("core", "memory", "slice") if point in HOT else ()))
    times = {"core": 2.0, "slice": 3.0 if point == HOT[1] else 1.0, "point": 1.0}
    rates = {
        n: times.get(n, 1.0) * pace * rng.lognormal(0, 0.02) * rng.lognormal(0, 0.02, 3)
        for n in names
    }
    return visit(launch, rates, point, **({"walked": 9 * MIB, "layers": 1} if point in HOT else {}))


def measured(seed):
    """A run to which launches are added while a question is open, of all points that are asked
    about.
    """
    rng, found = np.random.default_rng(seed), []
    for launch in range(MOST):
        left = open_questions(found, MACHINE, MOST) if launch >= PLANNED else ()
        names = {name for each in left for name in each.points}
        todo = [point for point in (*HOT, *FAR, BESIDE) if launch < PLANNED or point.name in names]
        for place, which in enumerate(rng.permutation(len(todo))):
            found.append(visited(rng, launch, place / len(todo), todo[which]))
    return findings(RUN, found, MACHINE, most=MOST)


def claims(found):
    """How many claims about L3 and how many pairs the run has, and how many of each differ."""
    l3, words = found.points["l3"].replace("", None).dropna(), found.contrasts["word"]
    return np.array([len(l3), l3.isin([CONFIRMED, REFUTED]).sum(), len(words), differ(words)])


def differ(words):
    return words.isin([FASTER, SLOWER]).any()


@pytest.mark.parametrize("runs", [5, pytest.param(300, marks=pytest.mark.full)])
def test_noise_differs_in_nothing(runs):
    """Added launches must not change that: at most one claim about L3 in fifty, and one page in
    twenty that says of any pair that it differs.
    """
    l3, said, pairs, pages = sum(claims(measured(seed)) for seed in range(runs))
    assert (l3, pairs) == (2 * runs, 3 * runs)
    assert said <= binom.ppf(0.999, l3, 0.02) and pages <= binom.ppf(0.999, runs, 0.05)
