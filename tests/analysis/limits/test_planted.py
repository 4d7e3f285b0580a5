"""Verdicts on runs whose truth is known: never the opposite of the truth, and nearly always the
true word.
"""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from kvbench.analysis.limits import frames
from tests.analysis.limits.planted import KIB, MIB, PLANTS, machine

SEEDS = range(20)
RIGHT = 0.95  # of the words
EVERY = [pytest.param(name, marks=pytest.mark.full) if "noise" in name else name for name in PLANTS]


@cache
def points(name, seed, launches=10):
    plant = PLANTS[name]
    return frames.points(plant.records(seed, launches), machine(plant.host))


def words(name):
    """How often each word is said about a planted point, over all seeds."""
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


@pytest.mark.parametrize("name", PLANTS)
def test_one_launch_settles_nothing(name):
    table = points(name, 1, launches=1)
    assert not set(table["l3"]) & {"confirmed", "refuted", "core-bound", "unstable"}


def test_a_lying_l3_is_named():
    """Reads that L3 should serve come from memory: both are about as fast."""
    table = points("lying L3", 1)
    lying = table[table["l3"] == "not testable"]
    assert len(lying) == 3 and set(lying["l3_reason"]) == {"L3 is read no faster than memory"}
    assert (lying["l3_reads"] < 1.1).all()


@pytest.mark.parametrize("footprint", [3, 4])
def test_what_a_lying_l3_does_serve_is_fast(footprint):
    """A slice that fits the 6 MiB that L3 really serves is faster, whatever is declared."""
    host = replace(PLANTS["lying L3"].host, l2=KIB << 8)
    plant = replace(PLANTS["lying L3"], host=host, footprints=(footprint * MIB,))
    table = frames.points(plant.records(1), machine(host))
    assert list(table.loc[table["residency"] == "hot", "l3"]) == ["confirmed"]
