"""The model of larger servers, against a search over bandwidths."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.answers.decodes import Decodes
from kvbench.analysis.answers.servers import LEAST, MOST, servers
from tests.made_run import DECODE
from tests.report.planted import NONE, PAGE, decode


def of(*rows):
    """Rows of tokens/s, GB/s and share of core speed, for two threads."""
    own = []
    for number, (speed, rate, core) in enumerate(rows):
        point = decode(DECODE, speed, rate, core=core)
        own.append(replace(point, dtype=str(number)))
    return servers(Decodes(NONE, None, tuple(own)), PAGE, 30.0)


def test_a_line_by_hand():
    """20 tokens/s at 30 GB/s read 1.5 GB per token. At 60 % of core speed a core has 16.7."""
    found = of((20.0, 30.0, 0.6))
    (line,) = found.lines
    assert (line.bytes, line.core, line.knee) == pytest.approx((1.5e9, 20 / 0.6 / 2, 25.0))
    assert (line.at(3.0), line.at(40.0)) == pytest.approx((2.0, line.core))
    assert found.here == 15.0
    (stretch,) = found.fastest
    assert (stretch.dtype, stretch.low, stretch.high) == ("0", LEAST, MOST)


def test_a_core_allows_what_was_reached():
    assert of((20.0, 30.0, 1.25)).lines[0].core == pytest.approx(10.0)


def test_the_fastest_is_that_of_a_search():
    draw = np.random.default_rng(3)
    for _ in range(50):
        rows = [
            (draw.uniform(10, 200), draw.uniform(5, 40), draw.uniform(0.2, 1.1)) for _ in range(6)
        ]
        found = of(*rows)
        assert found.fastest[0].low == LEAST and found.fastest[-1].high == MOST
        for bandwidth in draw.uniform(LEAST, MOST, 20):
            read = [rate * 1e9 / speed for speed, rate, _ in rows]
            reached = [
                min(bandwidth * 1e9 / count, speed / min(1, core) / 2)
                for count, (speed, _, core) in zip(read, rows, strict=True)
            ]
            own = next(each for each in found.fastest if each.low <= bandwidth <= each.high)
            assert reached[int(own.dtype)] == pytest.approx(max(reached))


def test_without_core_speeds_there_is_no_line():
    assert of((20.0, 30.0, None)).lines == () and of().fastest == ()
