"""kvbench lab users: bytes of uneven, even and padded batches against formulas, and what is said of
planted times.
"""

import numpy as np
import pytest

from kvbench.errors import WrongAnswer
from kvbench.lab.users import experiment, refuse_wrong
from kvbench.model import Sample
from kvbench.native import Cache

SMALL = {"model": "qwen3-0.6b", "context": 128}
HEADS, GROUP, DIM, SEQUENCES = 8, 2, 128, 8
WOBBLE = (1.0, 1.001, 0.999, 1.002, 0.998)  # of rounds


@pytest.fixture
def plant(monkeypatch):
    """Called with what tells the seconds of a pass, by a program's name, first cache and bytes, and
    the round.
    """

    def planted(seconds):
        def rounds(programs, samples, wanted, seed):
            for number in range(samples):
                for program in programs:
                    took = seconds(
                        program.name, cache_of(program), program.traffic().bytes_compulsory, number
                    )
                    took *= WOBBLE[number % len(WOBBLE)]
                    yield Sample(
                        program.name, number, 4, 4 * took, (), 0.02, 0, 0, sample_time=4 * took
                    )

        monkeypatch.setattr("kvbench.lab.users.rounds", rounds)

    return planted


def cache_of(program):
    return next(kept for kept in program.tasks[0]._keep if isinstance(kept, Cache))


def moved(lengths):
    return 2 * HEADS * DIM * 2 * sum(lengths) + SEQUENCES * 2 * GROUP * HEADS * DIM * 4


def lengths(row):
    return [int(length) for length in row.lengths.split()]


def kind(cache):
    """The kind of batch that a cache holds."""
    held = np.sort(cache.lengths)
    return (
        "even"
        if held[-1] - held[0] == 1
        else "one long"
        if held[-1] == 128 and held[0] == 16
        else "other"
    )


def by_bytes(name, cache, bytes_, number):
    return bytes_ / 20e9


def test_bytes(setup, plant):
    plant(by_bytes)
    found = experiment(setup, **SMALL).table
    assert list(found["batch"]) == ["uniform", "long-tailed", "one long"]
    for row in found.itertuples():
        own = lengths(row)
        assert len(own) == SEQUENCES and own == sorted(own, reverse=True)
        assert row.tokens == sum(own) and 1 <= own[-1] <= own[0] <= 128
        assert row.bytes == moved(own)
        assert row.padded_bytes == pytest.approx(moved([own[0]] * SEQUENCES) / moved(own))
        assert row.padded_times == pytest.approx(row.padded_bytes)
        assert row.efficiency == pytest.approx(1.0), "as many bytes, at one rate"
        assert row.even_gbps == pytest.approx(20.0) and row.skew == 0.02
    assert lengths(found.iloc[2]) == [128, *[16] * 7]


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (lambda number: 1.0, "none is slower beyond the noise"),
        (lambda number: 2.0, "50% (one long, 50% to 50%): one long is slower. "),
        (lambda number: 0.8, "none is slower beyond the noise"),
        (
            lambda number: 0.8 + 0.8 * (number % 2),
            "(one long, 62% to 125%): none is slower beyond the noise",
        ),
    ],
)
def test_the_sentence_goes_by_the_data(setup, plant, slower, said):
    def seconds(name, cache, bytes_, number):
        return bytes_ / 20e9 * (slower(number) if kind(cache) == "one long" else 1.0)

    plant(seconds)
    found = experiment(setup, **SMALL)
    assert said in found.sentence
    assert (
        f"the worst batch ({found.table.loc[found.table['padded_times'].idxmax(), 'batch']})"
        in found.sentence
    )


def test_another_layout_has_the_same_batches(setup, plant):
    plant(by_bytes)
    found, other = (experiment(setup, **SMALL, layout=layout).table for layout in ("head", "paged"))
    assert other["efficiency"].to_numpy() == pytest.approx(1.0)
    assert list(found["lengths"]) == list(other["lengths"])


def test_a_wrong_answer_has_no_time():
    drawn = np.random.default_rng(1)
    k, v = drawn.standard_normal((2, 1, 40, 2, 16), dtype=np.float32)
    q = drawn.standard_normal((1, 4, 16), dtype=np.float32)
    with Cache(2, 16, 40) as cache:
        cache.bulk(k, v)
        out = cache.decode(q)
        refuse_wrong(cache, q, out)
        for wrong in (out + 1e-3, np.where(out == out.max(), np.nan, out)):
            with pytest.raises(WrongAnswer, match="head f32 cache is decoded off by"):
                refuse_wrong(cache, q, wrong)
