"""Why a cache is kept: exponents recovered from made-up times, sentences that say what is, and one small real run."""

import math
import os
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from kvbench.errors import BadArgument, WrongAnswer
from kvbench.lab.experiment import Asked
from kvbench.lab.experiments import naive as lab
from kvbench.lab.geometry import known
from kvbench.machine import describe
from kvbench.native import default_library, library_path
from kvbench.suite import Model

CONTEXTS = [32, 64, 128, 256, 512, 1024]
SMALL = Model(1, q_heads=4, kv_heads=2, head_dim=16, max_context=1024, source="", hidden=24, intermediate=64)
HOW = lab._How(str(library_path()), default_library().isa(), 3)


def samples(naive, cached, rounds=8, contexts=CONTEXTS):
    """`naive`, `cached`: seconds of a token by context and round."""
    laws = {"naive": naive, "cached": cached}
    rows = [(way, at, n, laws[way](at, n)) for way in laws for at in contexts for n in range(rounds)]
    return pd.DataFrame(rows, columns=["way", "context", "round", "seconds"])


def slope(x, y):
    """Least squares by its formula."""
    x, y = np.log(x), np.log(y)
    return ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()


# ---- exponents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0, 2.0])
def test_the_exponent_of_a_law_is_found(power):
    """Below 256 tokens another law holds: it does not count."""
    taken = samples(lambda at, n: 3e-6 * at**power if at >= 256 else 1.0, lambda at, n: 1e-3)
    fits = lab._fits(taken)
    assert fits.loc["naive", ["token", "token_low", "token_high"]].tolist() == pytest.approx([power] * 3)
    assert fits.loc["cached", "token"] == pytest.approx(0.0, abs=1e-12)


def test_the_exponent_of_a_whole_answer():
    """Time in proportion to the context, and never less than at 32: what each token takes can be added up by hand."""
    fits = lab._fits(samples(lambda at, n: 2e-6 * at, lambda at, n: 5e-4))
    sums = [sum(2e-6 * max(token, 32) for token in range(1, at + 1)) for at in CONTEXTS]
    assert fits.loc["naive", "answer"] == pytest.approx(slope(CONTEXTS[3:], sums[3:]))
    assert fits.loc["cached", "answer"] == pytest.approx(1.0)
    table = lab._table(samples(lambda at, n: 2e-6 * at, lambda at, n: 5e-4))
    assert table["naive_answer"].tolist() == pytest.approx(sums)
    assert table["cached_answer"].tolist() == pytest.approx([5e-4 * at for at in CONTEXTS])


def test_exponents_are_fitted_in_each_round():
    """Half of the rounds obey one law and half another: the middle is between, the interval is the range."""
    fits = lab._fits(samples(lambda at, n: 1e-6 * at ** (1.0 + n % 2), lambda at, n: 1e-3, rounds=6))
    assert fits.loc["naive", ["token", "token_low", "token_high"]].tolist() == pytest.approx([1.5, 1.0, 2.0])


def test_speed_ups_are_formed_in_each_round():
    taken = samples(lambda at, n: 1e-4 * at * (n + 1), lambda at, n: 1e-3 * (n + 1), rounds=5)
    table = lab._table(taken).set_index("context")
    assert table.loc[64, ["speedup", "speedup_low", "speedup_high"]].tolist() == pytest.approx([6.4] * 3)
    assert table.loc[64, "cached"] == pytest.approx(3e-3)
    assert table.loc[64, "tokens_per_second"] == pytest.approx(1000 / 3)


# ---- sentences -------------------------------------------------------------------------------------------------------


def sentence(naive, cached):
    taken = samples(naive, cached)
    return lab._sentence(lab._table(taken), lab._fits(taken))


def test_a_gain_that_grows():
    said = sentence(lambda at, n: 1e-4 * at, lambda at, n: 1e-3 * (at / 32) ** 0.5)
    assert said.startswith(
        "At 1024 tokens of context a token takes 5.66 ms with the cache and 102 ms without it, 18.1 times"
    )
    assert "grows at every step of the context, from 3.2 times at 32 to 18.1;" in said
    assert "T^1.00 (1.00..1.00) without the cache and as T^0.50 (0.50..0.50) with it" in said


def test_a_cache_that_does_not_pay():
    said = sentence(lambda at, n: 1e-3, lambda at, n: 1e-3 * at)
    assert "tokens of context the cache does not pay: a token takes 1.02 s with the cache" in said
    assert "does not grow at every step" in said and "within noise" not in said
    assert "T^-0.00 (" not in said


def test_a_cache_that_makes_no_difference():
    said = sentence(lambda at, n: 1e-3 * (1 + n % 3), lambda at, n: 1e-3 * (1 + (n + 1) % 3))
    assert "the cache makes no difference beyond noise" in said
    assert "0.667 to 0.667 at 64, within noise" in said


def test_a_gain_that_falls_once():
    said = sentence(lambda at, n: 1e-4 * (at if at != 512 else 100), lambda at, n: 1e-3)
    assert "but does not grow at every step of the context (25.6 to 10 at 512)" in said


def test_a_gain_that_grows_within_noise():
    """From 128 to 256 tokens it becomes twice as much, and at each of the other steps a hundredth more."""
    said = sentence(lambda at, n: 1e-3 * (at ** (0.01) + 20 * (at > 128)) * (1 + n % 4 / 10), lambda at, n: 1e-3)
    assert "grows at every step" not in said and "the gain grows with the context, from 1.19 times at 32" in said
    assert "though not at every step beyond noise (within noise: 1.19 to 1.2 at 64, " in said and "at 256," not in said


def test_growth_within_noise_beside_a_fall():
    laws = {32: 1.0, 64: 1.01, 128: 0.2}
    said = sentence(lambda at, n: 1e-3 * laws.get(at, at / 100) * (1 + n % 4 / 10), lambda at, n: 1e-3)
    assert (
        "does not grow at every step of the context (1.16 to 0.23 at 128; growth within noise: 1.15 to 1.16 at 64)"
        in said
    )


# ---- what is measured ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "expected"), [(1024, CONTEXTS), (2048, [*CONTEXTS, 2048]), (1500, [*CONTEXTS, 1500])])
def test_contexts_double(most, expected):
    assert lab._contexts(most) == expected


def test_too_few_contexts_to_fit():
    with pytest.raises(BadArgument, match="--context is 1000"):
        lab._contexts(1000)


def right(layer, context):
    """Plain NumPy, in float64."""
    states = layer._states[:context].astype(np.float64)
    q, k, v = (states @ layer._weights[name].astype(np.float64) for name in "qkv")
    k, v = (rows.reshape(context, SMALL.kv_heads, SMALL.head_dim) for rows in (k, v))
    out = np.empty((SMALL.q_heads, SMALL.head_dim))
    for head, query in enumerate(q[-1].reshape(SMALL.q_heads, SMALL.head_dim)):
        own = head * SMALL.kv_heads // SMALL.q_heads
        weights = np.exp(k[:, own] @ query / math.sqrt(SMALL.head_dim))
        out[head] = weights @ v[:, own] / weights.sum()
    return out


@pytest.mark.parametrize("context", [16, 33, 300])
def test_both_ways_are_attention(context):
    with lab._Layer(HOW, SMALL, 300) as layer:
        for way, steps in (("naive", 1), ("naive", 3), ("cached", 1), ("cached", 16)):
            assert np.abs(getattr(layer, way)(context, steps)[0] - right(layer, context)).max() < 1e-5
        layer.refuse_wrong(context)


def test_a_wrong_key_is_an_error_and_no_time():
    with lab._Layer(HOW, SMALL, 300) as layer:
        layer._kept.arena.view(np.float32)[:4] += 1e4
        with pytest.raises(WrongAnswer, match="cached: off by"):
            layer.refuse_wrong(300)


def test_every_way_context_and_round_is_timed_once():
    taken = lab.measured(HOW, SMALL, CONTEXTS, 2)
    assert len(taken) == len(taken.drop_duplicates(["way", "context", "round"])) == 2 * 6 * 2
    assert (taken["seconds"] > 0).all()
    lab._sentence(lab._table(taken), lab._fits(taken))


def test_the_experiment(monkeypatch, tmp_path):
    cpu, library = min(os.sched_getaffinity(0)), default_library()
    monkeypatch.setattr(lab, "_ROUNDS", 1)
    monkeypatch.setattr(lab, "known", lambda name: SMALL)
    found = lab.experiment(Asked(describe(), library, (cpu,), library.isa(), 1, tmp_path), context=1024)
    assert found.table["context"].tolist() == CONTEXTS
    assert found.sentence.startswith("At 1024 tokens") and not any(
        "nan" in text for text in (found.sentence, *found.notes)
    )
    assert {column.name for column in found.columns} <= set(found.table)


def test_a_model_without_a_hidden_size(monkeypatch):
    monkeypatch.setattr(import_module("kvbench.suite.models"), "model", lambda name: replace(SMALL, hidden=0))
    with pytest.raises(BadArgument, match="has no hidden size of gpt-2") as caught:
        known("gpt-2")
    assert "qwen3-0.6b" in caught.value.hint
