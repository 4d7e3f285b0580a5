"""kvbench lab window: bytes, and the answers' deviation, against formulas; and what is said of planted times."""

import numpy as np
import pytest

from kvbench.errors import BadArgument
from kvbench.lab.experiments.window import experiment
from tests.lab.conftest import noisy

SMALL = {"model": "qwen3-0.6b", "context": 500, "window": 64}
HEADS, GROUP, DIM = 8, 2, 128


def by_bytes(name, cache, moved, number):
    return moved / 20e9


def attended(q, k, v):
    """q [D], k and v [T,D]"""
    scores = k @ q / np.sqrt(DIM)
    weights = np.exp(scores - scores.max())
    return weights @ v / weights.sum()


def test_bytes_and_times(asked, plant):
    plant(by_bytes)
    found = experiment(asked, **SMALL).table
    assert list(found["context"]) == [32, 64, 128, 256, 500]
    for row in found.itertuples():
        vectors = 2 * GROUP * HEADS * DIM * 4
        assert row.full_bytes == 2 * HEADS * row.context * DIM * 2 + vectors
        assert row.window_bytes == 2 * HEADS * min(row.context, 64) * DIM * 2 + vectors
        assert row.times == pytest.approx(row.full_bytes / row.window_bytes)
        assert row.full_growth == pytest.approx(row.full_bytes / found["full_bytes"][1])
    assert found["window_held"].nunique() == 1 and found["full_held"].is_monotonic_increasing


def test_deviations(asked, plant):
    plant(by_bytes)
    found = experiment(asked, **SMALL).table.set_index("context")
    drawn = np.random.default_rng(asked.seed)
    k, v = drawn.standard_normal((2, 500, DIM), dtype=np.float32).astype(np.float64)
    q = drawn.standard_normal((GROUP, DIM), dtype=np.float32).astype(np.float64)
    for context, row in found.iterrows():
        own_k, own_v = k[:context], v[:context]
        near_k, near_q = own_k.copy(), q.copy()
        near_k[:, 0] = [-(context - 1 - token) / 8 for token in range(context)]  # an eighth of the window
        near_q[:, 0] = np.sqrt(DIM)
        for name, keys, queries in (("random", own_k, q), ("local", near_k, near_q)):
            full = np.array([attended(each, keys, own_v) for each in queries])
            last = np.array([attended(each, keys[-64:], own_v[-64:]) for each in queries])
            assert row[f"{name}_deviation"] == pytest.approx(
                np.sqrt(((last - full) ** 2).sum() / (full**2).sum()), abs=1e-12
            )
    assert not found.loc[[32, 64], ["random_deviation", "local_deviation"]].any(axis=None)


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (lambda number: 1.0, "1.00 times (1.00..1.00) what it was, flat within the noise,"),
        (lambda number: noisy(number, 0.3), "1.00 times (0.70..1.30) what it was, flat within the noise,"),
        (lambda number: 1.5, "1.50 times (1.50..1.50) what it was, growth beyond the noise,"),
        (lambda number: 0.5, "0.50 times (0.50..0.50) what it was, less beyond the noise,"),
    ],
)
def test_the_sentence_goes_by_the_data(asked, plant, window, said):
    plant(lambda name, cache, moved, number: 1e-3 * {"full": 7.0, "window": window(number)}.get(name, 1.0))
    found = experiment(asked, **SMALL).sentence
    assert f"From 64 to 500 tokens the time of a token with a window of 64 becomes {said}" in found
    assert found.endswith(".") and ". " not in found, "one sentence"
    assert "its bytes stay the same; with attention to all tokens the time becomes 7.00 times (7.00..7.00)" in found


def test_a_context_within_the_window_tells_nothing(asked):
    with pytest.raises(BadArgument, match="--context 64 never leaves a window of 64"):
        experiment(asked, context=64, window=64)
