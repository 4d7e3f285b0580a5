"""kvbench lab gqa: bytes against formulas, times against planted ones, the sentence whichever way they fall."""

import pytest

from kvbench.lab.experiments.gqa import experiment
from tests.lab.conftest import noisy

SMALL = {"model": "gpt-2", "context": 128, "dtype": "f16"}
HEADS, DIM, WIDE = 12, 64, 2  # of gpt-2, and bytes of a number


def test_bytes_and_times(asked, plant):
    each = {"flash": 1e-3, "perhead": 3e-3, "point": 1e-3, "twin": 0.5e-3, "twin_ahead": 0.8e-3}
    plant(lambda name, *_: each[name])
    found = experiment(asked, **SMALL).table
    assert list(found["group"]) == [1, 1, 2, 2, 4, 4, 8, 8]
    cache = 2 * HEADS * 128 * DIM * WIDE
    for row in found.itertuples():
        vectors = 2 * row.group * HEADS * DIM * 4  # query and output
        assert row.compulsory_bytes == cache + vectors
        if row.variant == "perhead":
            assert row.issued_bytes == pytest.approx(row.group * cache + vectors, rel=0.01)
        assert row.issued_times == row.issued_bytes / row.compulsory_bytes
        assert row.seconds == pytest.approx(each[row.variant]) and row.rounds == 24
        assert row.gbps == pytest.approx(row.compulsory_bytes / each[row.variant] / 1e9)
        assert row.issued_gbps == pytest.approx(row.issued_bytes / each[row.variant] / 1e9)
        assert row.times == pytest.approx(3.0 if row.variant == "perhead" else 1.0)
    once = found[found["variant"] == "flash"].iloc[0]
    assert once["efficiency"] == pytest.approx(0.5, rel=0.1), "of the faster twin, which moves a little less"


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (lambda number: 2.0, "costs time beyond the noise (2.00..2.00 over 24 rounds)"),
        (
            lambda number: 0.8,
            "yet it is faster, beyond the noise (0.80..0.80 over 24 rounds): one walk for the group does not pay",
        ),
        (noisy, "makes no difference that the noise would let through (0.50..1.50 over 24 rounds)"),
    ],
)
def test_the_sentence_goes_by_the_data(asked, plant, factor, said):
    plant(lambda name, cache, moved, number: 1e-3 * (factor(number) if name == "perhead" else 1.0))
    found = experiment(asked, **SMALL)
    assert said in found.sentence
    assert "With 1, 2, 4 and 8 query heads on each KV head" in found.sentence
