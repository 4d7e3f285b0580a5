"""What a point says of L3 beside plain reads of its own footprint: numbers by hand, eight launches each."""

import pytest

from kvbench.analysis.l3 import claim
from kvbench.analysis.launches import Estimate, Measured
from kvbench.model import Ceiling, Probe
from kvbench.regime import Regime

MIB = 1 << 20
INSIDE = Regime("L3", "16 MiB within 0.7 x 32 MiB of L3", "high")


def reads(bytes_, median, low, high, launches=8):
    probe = Probe("read", "scalar", (0,), "base", bytes_)
    taken = tuple((median,) for _ in range(launches))
    return Ceiling("mine", probe, "L3", median, low, high, taken, True, None)


def measured(median, low, high, core=80.0):
    """Of eight launches the range is the interval."""
    rates = {"point": [low, *[median] * 6, high], "core": [core] * 8}
    return Measured(
        {}, {name: Estimate.of(each) for name, each in rates.items()}, {"core": Estimate.of([median / core] * 8)}
    )


DRAM = reads(256 * MIB, 20.0, 19.0, 21.0)
SLOW, FAST = (15.0, 14.0, 16.0), (50.0, 45.0, 55.0)


@pytest.mark.parametrize(
    ("point", "near", "word"),
    [
        (FAST, (60.0, 55.0, 62.0), "confirmed"),
        (SLOW, (60.0, 55.0, 62.0), "refuted"),
        (SLOW, (20.5, 19.5, 21.5), "not testable"),  # reads as fast as from DRAM
        (FAST, (20.5, 19.5, 21.5), "not testable"),  # and a point that is faster says nothing of L3
        ((20.0, 15.0, 25.0), (20.5, 19.5, 21.5), "not testable"),
        (SLOW, (20.0, 12.0, 40.0), "not testable"),
        (FAST, (45.0, 20.5, 60.0), "confirmed"),  # neighbours in one launch: in the middle clearly faster
        (SLOW, (30.0, 20.5, 60.0), "refuted"),
        (SLOW, (20.8, 20.2, 25.0), "refuted"),  # no launch is as slow as DRAM in the middle
        (SLOW, (17.0, 16.0, 18.0), "refuted"),  # memory that is faster than L3
        (SLOW, (18.5, 17.0, 19.5), "not testable"),  # perhaps faster, perhaps not
    ],
)
def test_reads_of_the_footprint(point, near, word):
    said = claim(measured(*point), INSIDE, DRAM, "", reads(16 * MIB, *near))
    assert said.word == word
    assert ("16 MiB" in said.reason and "than from DRAM (20 GB/s, 19..21)" in said.reason) is (word == "not testable")


@pytest.mark.parametrize("near", [None, reads(16 * MIB, 20.0, 20.0, 20.0, launches=1)])
def test_without_reads_of_the_footprint_the_point_speaks_for_itself(near):
    assert claim(measured(*FAST), INSIDE, DRAM, "", near).word == "confirmed"
    assert claim(measured(*SLOW), INSIDE, DRAM, "", near).word == "refuted"


def test_where_l3_feeds_nothing_its_reads_are_not_asked():
    """A slice in the private caches, or beyond L3."""
    near = reads(16 * MIB, 20.0, 19.0, 21.0)
    assert claim(measured(*FAST), Regime("L2", "small", "high"), DRAM, "", near).word == "private-cache"
    assert claim(measured(*FAST), Regime("mixed", "large", "high"), DRAM, "", near).word == ""
