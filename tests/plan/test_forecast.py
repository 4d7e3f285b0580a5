"""The forecast of a sweep's time and memory."""

from dataclasses import replace
from functools import partial

import pytest

from kvbench.native import default_library, forms
from kvbench.plan import forecast
from tests.plan.made_sweep import expanded
from tests.plan.test_plan import BARE


@pytest.fixture
def sweep(tmp_path):
    return partial(expanded, tmp_path)


def test_time_grows_with_what_is_measured(sweep):
    one, two = forecast(sweep("context = 1024")), forecast(sweep("context = [1024, 2048]"))
    assert 0 < one.timed < one.seconds < two.seconds
    swept = forecast(sweep('context = 1024\nresidency = "evicted"'))
    assert swept.seconds > forecast(sweep('context = 1024\nresidency = "hot"')).seconds
    found = sweep("context = 1024")
    more = replace(found, plan=replace(found.plan, launches=2 * found.plan.launches))
    answer = 2 * 1024 * 8 * 128 / 30e6  # is computed once
    assert forecast(more).seconds == pytest.approx(2 * one.seconds - answer)


def test_samples_of_the_nominal_length(sweep):
    """10 launches with 3 samples of 30 ms: of the point, its twin in two forms and its core roof; 1
    ms for the cores' speed; of each ceiling, and one of each further form of reads.
    """
    found = sweep('context = 1024\nresidency = "hot"')
    probes, others = len(found.plan.points) - 1, len(forms("read", default_library())) - 1
    reads = sum(point.op == "read" for point in found.plan.points)
    assert forecast(found).timed == pytest.approx(
        10 * (3 * ((4 + probes) * 0.03 + 0.001) + others * reads * 0.03)
    )


def test_what_lies_in_memory_is_beside_reads_of_it(sweep):
    """10 launches with 3 samples of 30 ms more than for a point in a cache."""
    timed = []
    for word in ("hot", "evicted"):
        found = sweep(f'context = 1024\nlayers = 1\nresidency = "{word}"')
        alone = replace(found, plan=replace(found.plan, points=found.points))
        timed.append(forecast(alone).timed)
    assert timed[1] - timed[0] == pytest.approx(10 * 3 * 0.03)


def test_what_is_read_between_passes_takes_its_time(sweep):
    """10 launches with 3 samples of 30 ms, beside the same ceilings.

    Without its family, the point is timed beside the same point with nothing between, and has no
    reads of its rows. With its family it shares witnesses. Before each sample memory is read for at
    least 30 ms, or once at 10 GB/s.
    """
    seconds, base = {}, 'context = 1024\nresidency = "hot"\nbetween = '
    for between in ("0", "[0, 4096]", "[0, 1_000_000_000]"):
        found = sweep(base + between)
        own = replace(found, plan=replace(found.plan, points=found.points))
        seconds[between] = forecast(own)
    alone, small, large = seconds.values()
    assert small.timed - alone.timed == pytest.approx(10 * 3 * 0.03)
    assert large.timed == pytest.approx(small.timed)
    assert large.seconds - small.seconds == pytest.approx(10 * 3 * (0.1 - 0.03))
    kin = small.seconds - alone.seconds
    assert kin == pytest.approx(10 * (3 * 2 * 0.03 + 0.03), rel=0.01)  # and a visit each


def test_a_line_is_forecast_too(sweep):
    """A line of two dtypes, in as many launches as planned: 3 samples of each kernel, of its reads
    in two forms and of its core; of memory; and 1 ms of the cores' speed.
    """
    found = sweep('context = 1024\ndtype = ["f16", "i8"]')
    without, with_line = forecast(found), forecast(replace(found, line=found.points))
    timed = with_line.timed - without.timed
    assert timed == pytest.approx(10 * 3 * ((2 * 4 + 1) * 0.03 + 0.001))
    assert without.line == 0 < with_line.line
    assert with_line.seconds - without.seconds == pytest.approx(10 * with_line.line)
    # the contrast of dtypes already needs that memory
    assert with_line.memory == without.memory


def test_a_token_is_no_longer_than_a_sample(sweep):
    """A slice of 1 GiB, which a prompt takes a tenth of a second to fill."""
    long, short = (
        forecast(sweep(f'context = 262144\nlayers = 1\nop = "{op}"')).timed
        for op in ("bulk", "append")
    )
    store, probes = 2 * 262144 * 8 * 128 * (2 + 4) / 10e9, 10 * 3 * 0.03
    assert long - short == pytest.approx(10 * 3 * 3 * (store - 0.03), abs=4 * probes)


def test_a_step_takes_as_long_as_all_that_it_walks(sweep):
    """A pass over all layers and their weights at 10 GB/s: the step, its parts one after another,
    and a read of as many bytes; 30 ms more for each of two parts. 10 launches, 3 rounds.
    """
    found = sweep('op = "step"\ncontext = 1024\nlayers = 4\nbetween = 1000000000')
    alone = replace(found, plan=replace(found.plan, points=found.points))
    (needed,) = found.needs.values()
    assert needed.walked > 4 * (1_000_000_000 + 2 * 1024 * 8 * 128 * 2)
    walk = needed.walked / 10e9
    assert forecast(alone).timed == pytest.approx(10 * 3 * (3 * walk + 2 * 0.03 + 0.001))


def test_a_visit_has_not_hung_before_twenty_times_its_forecast(sweep):
    """12 samples of 30 ms, 3 of 1 ms, 30 ms, and 0.1 ms per slice; plus a minute, and a second for
    each 20 MB of memory.
    """
    found = sweep('context = 1024\nresidency = "hot"')
    (needed,) = found.needs.values()
    assert forecast(found).patience == pytest.approx(
        60 + 20 * (12 * 0.03 + 3 * 0.001 + 0.03 + 0.0001) + needed.memory / 20e6
    )


def test_variants_share_their_memory(sweep):
    one = forecast(sweep('context = 65536\nresidency = "hot"'))
    three = forecast(sweep('context = 65536\nresidency = "hot"\nvariant = "all"'))
    assert three.seconds - three.timed < 2.5 * (one.seconds - one.timed)


def test_nothing_to_measure(sweep):
    found = forecast(sweep('context = "0.5xL3"', BARE))
    assert found.largest is None and found.memory == 0 and found.timed == found.seconds == 0
