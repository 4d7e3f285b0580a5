"""Plateaus and capacities of made-up staircases with planted steps."""

from itertools import pairwise

import numpy as np
import pytest

from kvbench.analysis.measured.plateaus import capacities, corrections, plateaus
from tests.made_run import KIB, MIB, machine

SIZES = [2**power for power in np.arange(13, 29.01, 0.5)]  # 8 KiB to 512 MiB, two per octave


def staircase(steps, sizes=SIZES, noise=0.0, seed=0, width=0.25):
    """Rates of a staircase. `steps`: (rate, end in bytes), the last without an end. A step takes
    about `width` octaves.
    """
    x = np.log2(np.asarray(sizes, float))
    logs = np.full(len(x), np.log(steps[-1][0]))
    for (rate, end), (following, _) in pairwise(steps):
        logs += (np.log(rate) - np.log(following)) / (1 + np.exp((x - np.log2(end)) / (width / 4)))
    return np.exp(logs + noise * np.random.default_rng(seed).standard_normal(len(x)))


PART = machine(1)
PLAIN = ((400, 32 * KIB), (200, MIB), (80, 32 * MIB), (20, None))


def by_level(rates, part=PART, sizes=SIZES):
    return {c.level: c for c in capacities(sizes, rates, part, part.allowed)}


def test_plateaus_of_a_clean_staircase():
    found = plateaus(SIZES, staircase(PLAIN))
    assert [p.gbps for p in found] == pytest.approx([400, 200, 80, 20], rel=0.02)
    ends = [32 * KIB, MIB, 32 * MIB, SIZES[-1]]
    for plateau, start, end in zip(found, [SIZES[0], *ends], ends, strict=False):
        assert start <= plateau.low_bytes < plateau.high_bytes <= end


@pytest.mark.parametrize("seed", range(40))
def test_noise_of_five_per_cent_makes_no_plateaus_and_hides_none(seed):
    rates = [p.gbps for p in plateaus(SIZES, staircase(PLAIN, noise=0.05, seed=seed))]
    assert [min((400, 200, 80, 20), key=lambda r: abs(np.log(r / rate))) for rate in rates] == [
        400,
        200,
        80,
        20,
    ]
    assert rates == pytest.approx([400, 200, 80, 20], rel=0.12)


def test_one_wild_cell_does_not_break_a_plateau():
    rates = staircase(PLAIN)
    rates[8] *= 0.4  # 256 KiB
    assert len(plateaus(SIZES, rates)) == 4


def test_a_slope_is_no_plateau():
    """Every cell is 30 % below the one before, so that the slope has no level in it."""
    assert plateaus(SIZES[:12], [100 * 0.7**n for n in range(12)]) == ()


@pytest.mark.parametrize("seed", range(20))
def test_capacities_are_the_declared_ones_where_nothing_lies(seed):
    found = by_level(staircase(PLAIN, noise=0.05, seed=seed))
    for level, declared in ((1, 32 * KIB), (2, MIB), (3, 32 * MIB)):
        capacity = found[level]
        assert capacity.declared == declared and capacity.note == ""
        assert capacity.effective == pytest.approx(declared, rel=0.25)
        assert capacity.low <= capacity.effective <= capacity.high
        assert capacity.high / capacity.low == pytest.approx(2**0.5)
    assert corrections(list(found.values())) == {}


def test_the_crossing_is_interpolated():
    """A straight fall in the logarithms of both, from 4 to 16 MiB: its middle is 8 MiB."""
    sizes = [MIB, 2 * MIB, 4 * MIB, 6 * MIB, 12 * MIB, 16 * MIB, 32 * MIB, 64 * MIB]
    rates = [100 * 2 ** -np.clip(np.log2(bytes_ / (4 * MIB)), 0, 2) for bytes_ in sizes]
    (capacity,) = capacities(sizes, rates, machine(1, l1=None, l2=None, l3=8 * MIB), (0,))
    assert capacity.effective == pytest.approx(8 * MIB)
    assert (capacity.low, capacity.high) == pytest.approx((6 * MIB, 12 * MIB))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("part", [0.5, 0.25, 0.125])
def test_an_l3_of_which_only_a_part_is_ours(part, seed):
    steps = ((400, 32 * KIB), (200, MIB), (80, 32 * MIB * part), (20, None))
    capacity = by_level(staircase(steps, noise=0.05, seed=seed))[3]
    assert capacity.effective == pytest.approx(32 * MIB * part, rel=0.25)
    assert "L3 declares 32 MiB but serves about" in capacity.note and "shared" in capacity.note
    assert corrections([capacity]) == {3: capacity.effective}


LONG, LONGER = ([2**power for power in np.arange(13, top, 0.5)] for top in (31.01, 33.01))


@pytest.mark.parametrize(
    ("steps", "part", "sizes", "effective", "notes"),
    [
        # all but one as declared: an L3 that is larger, by much and by little; a private cache that
        # is smaller
        (
            (400, 32 * KIB, 200, MIB, 80, 96 * MIB, 20),
            (16, MIB),
            LONG,
            {2: MIB, 3: 96 * MIB},
            {3: "declaration is wrong"},
        ),
        ((400, 32 * KIB, 200, MIB, 25, 32 * MIB, 20), (22, MIB), LONG, {3: 32 * MIB}, {}),
        (
            (400, 32 * KIB, 200, 256 * KIB, 80, 32 * MIB, 20),
            (32, MIB),
            SIZES,
            {},
            {2: "L2 declares 1 MiB but serves"},
        ),
        # beyond 128 MiB address translation costs more, but the end of L3 does not move
        (
            (400, 32 * KIB, 200, MIB, 80, 32 * MIB, 30, 128 * MIB, 20),
            (32, MIB),
            LONG,
            {3: 32 * MIB},
            {},
        ),
        # an L3 as slow as memory, and hardly faster: 8 % is more than the noise here, and still
        # nothing to build on
        (
            (400, 32 * KIB, 200, MIB, 21, 32 * MIB, 20),
            (32, MIB),
            SIZES,
            {2: MIB, 3: None},
            {3: "unknown: "},
        ),
        (
            (400, 32 * KIB, 200, MIB, 21.6, 32 * MIB, 20),
            (32, MIB),
            SIZES,
            {3: None},
            {3: "unknown: "},
        ),
        # both plateaus are long, but too close to tell apart
        (
            (400, 32 * KIB, 200, MIB, 21.9, 32 * MIB, 20),
            (32, MIB),
            LONGER,
            {3: None},
            {3: "told apart: 21.9 and 20"},
        ),
        (
            (400, 32 * KIB, 82, MIB, 80, 32 * MIB, 20),
            (32, MIB),
            SIZES,
            {1: 32 * KIB, 2: None, 3: 32 * MIB},
            {2: "unknown"},
        ),
        # nothing was measured beyond L3
        (
            (400, 32 * KIB, 200, MIB, 80, 32 * MIB, 20),
            (32, MIB),
            [b for b in SIZES if b <= 16 * MIB],
            {2: MIB, 3: None},
            {3: "no plateau was seen behind"},
        ),
    ],
)
def test_one_level_that_is_not_as_declared(steps, part, sizes, effective, notes):
    """Such a step does not correct a declared size: nothing beyond it was measured, or it is not
    L3's.
    """
    l3, l2 = part
    found = by_level(
        staircase([*zip(steps[::2], (*steps[1::2], None), strict=True)], sizes),
        machine(1, l2=l2, l3=l3 * MIB),
        sizes,
    )
    for level, size in effective.items():
        assert found[level].effective == (size and pytest.approx(size, rel=0.2))
    assert all(notes.get(level, "") in capacity.note for level, capacity in found.items())
    assert all(level in notes or not capacity.note for level, capacity in found.items())
    assert corrections(list(found.values())) == {}


def test_a_gentle_slope_is_no_plateau():
    """As measured on two cores that share a declared L3 of 32 MiB with others: two cells half way
    down are close together.
    """
    sizes = [2.8, 4, 5.7, 8, 11.3, 16, 20.8, 32, 45.3, 64, 90.5, 128, 192]
    rates = [136, 138, 133, 118, 133, 116, 83.7, 43.9, 37.2, 31.5, 27.1, 25.9, 30.3]
    (capacity,) = capacities(
        [size * MIB for size in sizes], rates, machine(1, l1=None, l2=None), (0, 1)
    )
    assert capacity.low == pytest.approx(20.8 * MIB) and capacity.high == pytest.approx(32 * MIB)


def test_a_step_within_memory_is_no_l3():
    """L3 is as slow as memory. The slowdown by a quarter beyond 128 MiB is memory, too."""
    sizes = [2**power for power in np.arange(13, 31.01, 0.5)]
    rates = staircase(((400, 32 * KIB), (200, MIB), (20, 128 * MIB), (15, None)), sizes)
    assert by_level(rates, sizes=sizes)[3].effective is None
    # nothing of L3 was measured
    sizes = [bytes_ for bytes_ in sizes if not MIB < bytes_ < 20 * MIB]
    rates = staircase(((400, 32 * KIB), (200, MIB), (30, 128 * MIB), (15, None)), sizes)
    assert by_level(rates, sizes=sizes)[3].effective is None


def test_too_few_footprints_are_unknown():
    """With one footprint in L3, neither the end of L3 nor that of L2 is known."""
    sizes = [8 * KIB, 16 * KIB, 256 * KIB, 512 * KIB, 8 * MIB, 256 * MIB, 512 * MIB]
    found = by_level(staircase(PLAIN, sizes), sizes=sizes)
    assert found[1].effective is not None
    assert found[3].effective is None and "no two footprints" in found[3].note
    assert found[2].effective is None and "anywhere before 256 MiB" in found[2].note
    assert all(
        c.effective is None for c in by_level([100.0, 20.0], sizes=[16 * KIB, 512 * MIB]).values()
    )


def test_a_wide_bracket_contradicts_nothing():
    """Nothing was measured between 20 and 128 MiB, so the middle is no reason to doubt 32 MiB."""
    sizes = [
        kib * KIB
        for kib in (8, 16, 24, 96, 400, 800, 3 << 10, 8 << 10, 20 << 10, 128 << 10, 192 << 10)
    ]
    found = by_level(staircase(PLAIN, sizes), sizes=sizes)
    assert (found[3].low, found[3].high) == pytest.approx((20 * MIB, 128 * MIB))
    assert found[3].effective > 1.5 * 32 * MIB
    assert [capacity.note for capacity in found.values()] == ["", "", ""]
    assert corrections(list(found.values())) == {}


def test_private_caches_are_per_core_and_l3_per_domain():
    """Four threads on two domains: the steps lie at four L1s, four L2s and two L3s."""
    part = machine(4, per_l3=2)
    found = by_level(
        staircase(((400, 128 * KIB), (200, 4 * MIB), (80, 64 * MIB), (20, None))), part
    )
    effective = {level: capacity.effective for level, capacity in found.items()}
    assert effective == pytest.approx({1: 32 * KIB, 2: MIB, 3: 32 * MIB}, rel=0.2)
    assert {level: capacity.declared for level, capacity in found.items()} == {
        1: 32 * KIB,
        2: MIB,
        3: 32 * MIB,
    }
    alone = {c.level: c for c in capacities(SIZES, staircase(PLAIN), part, (2,))}
    assert alone[2].effective == pytest.approx(MIB, rel=0.2)
