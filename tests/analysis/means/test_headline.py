"""The first screen's facts, from made-up records whose answers are worked out by hand; and its
words.
"""

from dataclasses import replace

import pytest

from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.models import Geometry
from kvbench.report.ending import short, summary
from kvbench.report.words.headline import badge, tiles
from tests.made_run import DECODE, MACHINE, MIB, RUN, failed, probe, visit

MODEL = Geometry(
    "llama-3-8b", 32, DECODE.shape.q_heads, DECODE.shape.kv_heads, DECODE.shape.head_dim, 131072
)
F32 = replace(DECODE, dtype="f32")
NOISE = (0.98, 1.0, 1.0, 1.0, 1.0, 1.02)


def run(fast=1.0, spread=1.0, **more):
    """f16 at 15 GB/s, f32 at `fast` times that; plain reads of memory at 20."""
    records = [probe(n, 20.0 * noise) for n, noise in enumerate(NOISE)]
    for n, noise in enumerate(NOISE):
        noise = 1 + spread * (noise - 1)
        for point, rate in ((DECODE, 15.0), (F32, 15.0 * fast)):
            shares = {
                "point": [rate * noise],
                "twin": [20.0 * noise],
                "twin_ahead": [10.0],
                "core": [80.0],
            }
            records.append(
                visit(n, shares, point, walked=256 * MIB * (1 if point is DECODE else 2))
            )
    return findings(RUN, records, MACHINE, models=[MODEL], **more)


def test_bars_are_ranked_by_tokens():
    """A step walks 32 slices of 16 MiB at 15 GB/s; f32's are twice as large."""
    found = run().headline
    assert [bar.dtype for bar in found.bars] == ["f16", "f32"]
    tokens = 15e9 / (32 * 16 * MIB)
    assert [bar.tokens_per_second.value for bar in found.bars] == [
        pytest.approx(tokens),
        pytest.approx(tokens / 2),
    ]
    assert found.bars[0].memory_allows == pytest.approx(20e9 / (32 * 16 * MIB))
    assert found.bars[0].level and not found.bars[1].level
    assert (found.memory.value, found.model, found.context) == (
        pytest.approx(20),
        "llama-3-8b",
        DECODE.shape.context,
    )


def test_what_noise_reaches_is_level():
    found = run(fast=1.96).headline
    assert found.bars[0].dtype == "f16" and found.bars[1].level
    assert "f32 is level within noise" in tiles(found)[0].detail


@pytest.mark.parametrize(("spread", "grade"), [(1, "good"), (5, "fair"), (20, "poor")])
def test_noise_makes_the_grade(spread, grade):
    """Intervals of six launches are all of them: 4 %, 20 % and 80 % wide."""
    quality = run(spread=spread).headline.quality
    assert quality.grade == grade and badge(quality)[0] == f"{grade.upper()} RUN"


def test_little_to_say():
    found = findings(RUN, [failed(0, DECODE, error="it hung")], MACHINE)
    assert (
        found.headline.bars == ()
        and found.headline.memory is None
        and found.headline.quality.grade == "poor"
    )
    assert [tile.value for tile in tiles(found.headline)] == ["not measured"] * 3 + [
        "not tested",
        "not measured",
    ]


def test_the_terminal_has_room():
    lines = short(summary(run()))
    assert len(lines) <= 12 and max(map(len, lines)) <= 120
    assert "27.9 tokens/s" in "\n".join(lines)  # 15e9 / 2**29
