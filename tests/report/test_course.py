"""What is said of a sweep while it is measured, by planted times."""

from dataclasses import replace

import pytest

from kvbench.model import Contrast, Record, Sample, Traffic
from kvbench.model.contrast import KERNEL
from kvbench.report.course import newest
from tests.made_run import DECODE, READ


def visit(point, microseconds, **facts):
    """One round more of the point has met other work, and took three times as long."""
    samples = [
        Sample(name, n, 1, each * 1e-6, (), 0.0, 0, 0)
        for n in range(5)
        for name, each in microseconds.items()
    ]
    samples.append(replace(samples[0], round=5, seconds=3 * samples[0].seconds))
    moved = dict.fromkeys(microseconds, Traffic(0, 4e6, 4e6, 4e6, 4e6, 0, 0, 0))
    return Record(0, point, tuple(samples), moved, {}, **facts)


def test_a_decode_is_held_against_memory_in_its_own_rounds():
    """4 MB in 200 us are 20 GB/s, and in 160 us 25 GB/s. Reads of other visits are of no matter."""
    newest(visit(READ, {"point": 50.0}))
    said = newest(visit(DECODE, {"point": 200.0, "twin": 190.0, "memory": 160.0}))
    assert said.endswith(": 20 GB/s, 80% of plain reads of memory")
    said = newest(visit(DECODE, {"point": 200.0, "twin": 190.0, "core": 50.0}))
    assert said.endswith(": 20 GB/s")
    apart = visit(DECODE, {"point": 200.0, "memory": 160.0})
    later = (replace(s, round=s.round + 9 * (s.program == "memory")) for s in apart.samples)
    apart = replace(apart, samples=tuple(later))
    assert newest(apart).endswith(": 20 GB/s")


def test_a_probe_says_its_median():
    assert newest(visit(READ, {"point": 100.0})).endswith("threads: 40 GB/s")


@pytest.mark.parametrize("point", [DECODE, READ, Contrast(KERNEL, (DECODE,))])
def test_what_failed_says_why(point):
    assert newest(Record(0, point, (), {}, {}, error="it is off")).endswith(": it is off")
