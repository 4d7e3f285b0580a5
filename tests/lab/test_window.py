"""kvbench lab window: how far its answers are off, against formulas."""

import numpy as np
import pytest

from kvbench.errors import BadArgument
from kvbench.lab.window import experiment
from tests.oracle import attend

SMALL = {"model": "qwen3-0.6b", "context": 500, "window": 64}
HEADS, GROUP, DIM = 8, 2, 128


def test_deviations(setup):
    outcome = experiment(setup, **SMALL)
    found = outcome.table.set_index("context")
    assert list(found.index) == [64, 128, 256, 500]
    drawn = np.random.default_rng(setup.seed)
    k, v = drawn.standard_normal((2, 500, DIM), dtype=np.float32).astype(np.float64)
    q = drawn.standard_normal((GROUP, DIM), dtype=np.float32).astype(np.float64)
    for context, row in found.iterrows():
        own_k, own_v = k[:context], v[:context]
        near_k, near_q = own_k.copy(), q.copy()
        # an eighth of the window
        near_k[:, 0] = [-(context - 1 - token) / 8 for token in range(context)]
        near_q[:, 0] = np.sqrt(DIM)
        for name, keys, queries in (("random", own_k, q), ("local", near_k, near_q)):
            full, last = (
                attend(queries[None], keys[None, of:], own_v[None, of:], 1 / np.sqrt(DIM))[0]
                for of in (0, -64)
            )
            assert row[f"{name}_deviation"] == pytest.approx(
                np.sqrt(((last - full) ** 2).sum() / (full**2).sum()), abs=1e-12
            )
    assert not found.loc[[64], ["random_deviation", "local_deviation"]].any(axis=None)
    last = found.loc[500]
    assert (
        f"At 500 tokens, a window of 64 changes the answer by {last.random_deviation:.2g} times"
        in (outcome.sentence)
    )


def test_a_context_within_the_window_tells_nothing(setup):
    with pytest.raises(BadArgument, match="--context 64 never leaves a window of 64"):
        experiment(setup, context=64, window=64)
