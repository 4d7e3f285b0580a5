"""Verdicts on runs whose truth is known: never the opposite of it, and nearly always the word
itself.
"""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from kvbench.analysis.limits import frames
from kvbench.analysis.means.headline import inside_l3
from kvbench.analysis.measured.columns import short_names
from kvbench.report.words.bandwidth import l3, leading
from tests.analysis.limits.planted import KIB, MIB, PLANTS, machine

SEEDS = range(20)
RIGHT = 0.95  # of the words
EVERY = [pytest.param(name, marks=pytest.mark.full) if "noise" in name else name for name in PLANTS]


@cache
def points(name, seed, launches=10):
    plant = PLANTS[name]
    return frames.points(plant.records(seed, launches), machine(plant.host))


def words(name):
    """How often each word is said of a planted point, over all seeds."""
    found = Counter()
    for seed in SEEDS:
        table = points(name, seed)
        hot = table[table["residency"] == "hot"]
        assert len(hot) == len(PLANTS[name].footprints)
        found.update(hot["l3"])
    return found


@pytest.mark.parametrize("name", EVERY)
def test_words(name):
    plant, found = PLANTS[name], words(name)
    assert not [word for word in plant.never if found[word]], found
    honest = sum(found[word] for word in (plant.word, *plant.allowed))
    assert honest >= RIGHT * found.total(), found
    assert found[plant.word] >= (0.5 if plant.allowed else RIGHT) * found.total(), found


UNTESTED = {
    "private cache": "no point lies in L3, 3 points in caches private to a core",
    "private caches hold more than L3": "not possible at 8 threads; try --axis threads=3",
    "L3 unknown": "no L3 is known for these CPUs",
    "no cache known": "the cache sizes of this machine are not known",
}


def answer(table, host):
    """The leading word of a run, or why it has none."""
    if len(inside := inside_l3(table)):
        return leading(inside["l3"].value_counts())
    return (
        l3(table.assign(short=short_names(table)), host)
        .removeprefix("L3 was not tested: ")
        .removesuffix(".")
    )


@pytest.mark.parametrize("name", EVERY)
def test_leading_words(name):
    """The verdict of each run, over all seeds: never the opposite, in 95 % the right one or an
    honest doubt.
    """
    plant = PLANTS[name]
    answers = [answer(points(name, seed), machine(plant.host)) for seed in SEEDS]
    assert not set(answers) & set(plant.never)
    honest = (UNTESTED.get(name, plant.word), *plant.allowed)
    assert sum(answer in honest for answer in answers) >= RIGHT * len(answers), answers


@pytest.mark.parametrize("name", PLANTS)
def test_one_launch_settles_nothing(name):
    table = points(name, 1, launches=1)
    assert not set(table["l3"]) & {"confirmed", "refuted", "core-bound", "unstable"}


def test_a_lying_l3_is_named():
    """Reads of what L3 should hold come from memory: both are about as fast."""
    table = points("lying L3", 1)
    lying = table[table["l3"] == "not testable"]
    assert len(lying) == 3 and set(lying["l3_reason"]) == {"L3 is read no faster than memory"}
    assert (lying["l3_reads"] < 1.1).all()


@pytest.mark.parametrize("footprint", [3, 4])
def test_what_a_lying_l3_does_serve_is_fast(footprint):
    """A slice that fits the 6 MiB which are served is truly faster, whatever else was declared."""
    host = replace(PLANTS["lying L3"].host, l2=KIB << 8)
    plant = replace(PLANTS["lying L3"], host=host, footprints=(footprint * MIB,))
    table = frames.points(plant.records(1), machine(host))
    assert list(table.loc[table["residency"] == "hot", "l3"]) == ["confirmed"]
