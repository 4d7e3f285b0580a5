"""Sample strips: which points are shown, why, and every sample of them."""

from dataclasses import replace

import pytest

from kvbench.report.figures.noise import noise
from tests.made_run import DECODE, STORE, visit
from tests.report.drawn import drawn, found_in, strange_colours, tagged

SHAKEN = replace(DECODE, layout="paged")


def launches(point, rates):
    return [visit(n, {"point": [rate, 2 * rate], "twin": [20.0, 40.0]}, point) for n, rate in enumerate(rates)]


def test_the_least_certain_points_come_first():
    """The middle half of 4, 5, 20, 25 spreads by 15, more than a third of the median."""
    found = found_in(launches(DECODE, [10.0, 10.1, 10.2, 10.3]) + launches(SHAKEN, [4.0, 25.0, 5.0, 20.0]))
    figure, text = drawn(noise, found)
    rows = figure.table
    assert list(rows.drop_duplicates("name")["name"]) == [SHAKEN.name, DECODE.name]
    own = rows[rows["name"] == SHAKEN.name]
    assert list(own["gbps"]) == pytest.approx([4.0, 8.0, 25.0, 50.0, 5.0, 10.0, 20.0, 40.0])
    assert list(own["launch"]) == [0, 0, 1, 1, 2, 2, 3, 3] and list(own["place"]) == list(range(8))
    assert set(own["why"]) == {"unstable"}
    assert tagged(text) == set(rows["row"]) and not strange_colours(text)
    assert "Of 2 points, 1 unstable" in figure.about


def test_the_twin_is_scaled_to_the_median_of_the_samples():
    """Rates 4, 8, 25, 50, 5, 10, 20, 40 have the median 15; 20 and 40 by turns have 30: half as large."""
    rows = drawn(noise, found_in(launches(SHAKEN, [4.0, 25.0, 5.0, 20.0])))[0].table
    assert list(rows["witness_gbps"]) == pytest.approx([20.0, 40.0] * 4)
    assert list(rows["witness_scaled"]) == pytest.approx([10.0, 20.0] * 4)


def test_a_launch_far_out_flags_a_point_and_so_does_a_wide_interval():
    calm = launches(DECODE, [10.0, 10.2, 10.4, 10.6])
    out = launches(SHAKEN, [10.0, 10.1, 10.2, 10.3, 10.4, 40.0])
    rows = drawn(noise, found_in(calm + out))[0].table.drop_duplicates("name").set_index("name")
    assert list(rows["why"]) == ["1 launch far outside the others", "interval 6% of the median"]


def test_samples_of_a_finished_launch_stand_behind_those_that_it_lacked():
    records = [visit(0, {"point": [3.0]}, part=1), visit(1, {"point": [5.0]}), visit(0, {"point": [1.0]})]
    rows = drawn(noise, found_in(records))[0].table
    assert list(rows["gbps"]) == pytest.approx([1.0, 3.0, 5.0])


def test_a_disturbed_sample_is_marked():
    record = visit(0, {"point": [8.0, 8.0]})
    record = replace(record, samples=(replace(record.samples[0], throttled=1), record.samples[1]))
    assert list(drawn(noise, found_in([record]))[0].table["disturbed"]) == [True, False]


def test_a_store_stands_beside_its_copy():
    rows = drawn(noise, found_in([visit(0, {"point": [4.0], "copy": [10.0]}, STORE)]))[0].table
    assert list(rows["witness"]) == ["copy"] and list(rows["witness_gbps"]) == pytest.approx([10.0])
