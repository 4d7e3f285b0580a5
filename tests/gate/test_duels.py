"""From pairs to launches: which pairs count, and the value of a launch."""

import math
from dataclasses import replace

import pytest

from kvbench.gate.duels import LEAST_LAUNCHES, duels
from tests.gate.made_duels import DECODE, STORE, duel


def only(records):
    (found,) = duels(records)
    return found


def test_a_launch_is_worth_the_median_of_its_pairs():
    found = only([duel(0, [(1e-3, 2e-3), (1e-3, 4e-3), (2e-3, 2e-3)]), duel(1, [(4e-3, 1e-3)] * 3)])
    assert found.values == pytest.approx({0: math.log(2), 1: math.log(1 / 4)})
    assert found.beside == pytest.approx({0: 0.0, 1: 0.0})
    assert found.seconds == pytest.approx((2.5e-3, 1.5e-3))
    assert found.dropped == 0


def test_witnesses_have_a_value_of_their_own():
    pair = {"base": 1e-3, "head": 1e-3, "beside_base": 1e-3, "beside_head": 3e-3}
    assert only([duel(0, [pair])]).beside == pytest.approx({0: math.log(3)})


@pytest.mark.parametrize("how", ["switches", "steal"])
def test_disturbed_pairs_do_not_count(how):
    pairs = [(1e-3, 1e-3)] * 3 + [(1e-3, 9e-3)] * 2
    calm = [duel(n, [(1e-3, 1e-3)] * 5) for n in range(1, 5)]
    found = only([duel(0, pairs, **{how: (3, 4)}), *calm])
    assert found.values == dict.fromkeys(range(5), 0.0)
    assert found.dropped == pytest.approx(2 / 25)


def test_a_disturbance_of_every_pair_is_usual():
    pairs = [(1e-3, 2e-3)] * 4
    assert only([duel(0, pairs, switches=range(4))]).values == pytest.approx({0: math.log(2)})


def test_a_disturbance_of_every_pair_of_a_point_is_usual_for_it():
    """A long pass has more switches than the short ones that are most of a run."""
    long, short = (
        replace(DECODE, dtype="f32"),
        [replace(DECODE, dtype=dtype) for dtype in ("f16", "bf16", "i8", "e4m3")],
    )
    pairs = [(1e-3, 1e-3)] * 4
    records = [duel(n, pairs, point) for n in range(6) for point in short for _ in range(3)]
    found = {
        each.point: each
        for each in duels([duel(n, pairs, long, switches=range(4)) for n in range(6)] + records)
    }
    assert found[long].dropped == 0 and len(found[long].values) == 6


def test_pairs_are_dropped_whichever_side_was_slower():
    """With the sides' names exchanged, the same pairs count, and all values change their sign."""
    pairs = [(1e-3, 1.1e-3), (1e-3, 5e-3), (2e-3, 1e-3), (1e-3, 0.9e-3)]
    one = only([duel(n, pairs, steal=(1,)) for n in range(3)])
    other = only([duel(n, [(b, a) for a, b in pairs], steal=(1,)) for n in range(3)])
    assert other.values == pytest.approx({launch: -value for launch, value in one.values.items()})
    assert (one.dropped, one.noise) == pytest.approx((other.dropped, other.noise))


def test_a_launch_with_few_pairs_left_does_not_count():
    calm, stormy = [(1e-3, 1e-3)] * 4, [(1e-3, 2e-3)] * 4
    found = only([*(duel(n, calm) for n in range(6)), duel(6, stormy, steal=(0, 1, 2))])
    assert sorted(found.values) == list(range(6))
    assert not found.few
    many = [duel(n, stormy, steal=(0, 1, 2) if n < 3 else ()) for n in range(6)]
    assert "3 of 6 launches" in only(many).few
    assert 3 / 6 < LEAST_LAUNCHES <= 6 / 7


def test_failures_are_told():
    found = only([duel(0, [(1e-3, 1e-3)]), replace(duel(1, []), error="decode.flash is off by 7")])
    assert found.fault == "failed in 1 of 2 launches: decode.flash is off by 7"
    assert "no pair" in only([duel(0, [])]).fault


def test_other_work_cannot_be_compared():
    record = duel(0, [(1e-3, 1e-3)])
    less = {**record.traffic, "head": replace(record.traffic["head"], bytes_compulsory=4096.0)}
    assert "4096 in head" in only([replace(record, traffic=less)]).fault


def test_points_are_apart():
    found = duels([duel(0, [(1e-3, 2e-3)]), duel(0, [(1e-3, 1e-3)], STORE)])
    assert [each.point for each in found] == [DECODE, STORE]
    assert [each.values[0] for each in found] == pytest.approx([math.log(2), 0.0])


def test_noise_is_that_of_half_of_the_pairs():
    """0, ±1 % and two far out: half of the pairs are within 1 % of the median."""
    pairs = [(1e-3, 1e-3 * math.exp(x)) for x in (-3.0, -0.01, -0.01, 0.0, 0.0, 0.01, 0.01, 3.0)]
    assert only([duel(0, pairs)]).noise == pytest.approx(0.02 / 1.349, rel=0.05)
