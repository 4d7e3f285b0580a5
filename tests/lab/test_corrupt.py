"""Faults are planted where they are said to be, and the sentence is true whichever way the tokens fall."""

import numpy as np
import pandas as pd
import pytest

from kvbench.lab.decoder import Cached, Decoder
from kvbench.lab.experiments import corrupt
from kvbench.native import Cache


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(corrupt, "PROMPT", 8)
    monkeypatch.setattr(corrupt, "STEPS", 24)
    monkeypatch.setattr(corrupt, "FAULT", 8)
    monkeypatch.setattr(corrupt, "apart", lambda call, *args, cpus: call(*args))


def test_a_small_one(short, asked):
    found = corrupt.experiment(asked)
    layouts = asked.library.words("layout")
    assert found.table[["layout", "run"]].values.tolist() == [
        [layout, run] for layout in layouts for run in ("healthy", *corrupt._FAULTS)
    ]
    assert len(found.every) == 24 * len(found.table)
    table = found.table.set_index(["run", "layout"])
    assert table.loc["healthy", "others"].tolist() == [0] * len(layouts)
    assert table.loc["healthy", "largest"].max() < 1e-5
    for fault in corrupt._FAULTS:
        assert table.loc[fault, "before"].max() < 1e-5
        assert table.loc[fault, "at"].min() > 1e-4
        own = found.every[found.every["run"] == fault]
        assert (own.loc[own["step"] < 8, "distance"] < 1e-5).all()
    assert "all 24 greedy tokens" in found.sentence
    assert found.sentence.endswith(".") and ". " not in found.sentence and found.sentence.count("; with ") == 2
    found.figure.canvas()


def test_another_format(short, asked):
    """Whatever becomes of the tokens, it is said."""
    found = corrupt.experiment(asked, dtype="i8")
    assert "a healthy i8 cache" in found.sentence
    assert found.table.loc[found.table["run"] == "healthy", "largest"].min() > 1e-4


# ---- the faults ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["head", "position", "paged", "blockt"])
def cached(request):
    with Cached(Decoder(1), 64, layout=request.param) as made:
        for token in range(40):
            made.step(token)
        yield made


def test_one_key_is_overwritten(cached):
    before = [np.array(cache.numpy()) for cache in cached.caches]
    corrupt._one_key(cached)
    after = [np.array(cache.numpy()) for cache in cached.caches]
    assert all(np.array_equal(one, two) for one, two in zip(before[1:], after[1:], strict=True))
    different = np.argwhere((before[0] != after[0]).any(axis=-1))
    assert different.tolist() == [[0, 0, corrupt.PROMPT // 2, 0]]  # K, the sequence, the token, the head
    assert np.all(after[0][0, 0, corrupt.PROMPT // 2, 0] == np.frombuffer(b"\x40" * 4, np.float32))


def test_writes_come_one_slot_late(cached):
    before = np.array(cached.caches[0].numpy())
    corrupt._shifted(cached)
    rows = np.arange(2 * 2 * 2 * 16, dtype=np.float32).reshape(2, 2, 1, 2, 16)  # token, K and V
    cache = cached.caches[0]
    for number, (k, v) in enumerate(rows, 1):
        cached.store(cache, k, v)
        assert cache.length == 40 + number
    held = np.array(cache.numpy())
    assert np.array_equal(held[:, :, :40], before)
    assert not held[:, :, 40].any()
    assert np.array_equal(held[:, :, 41], rows[0])
    cache.advance(1)
    assert np.array_equal(np.array(cache.numpy())[:, :, 42], rows[1])


def test_late_writes_are_of_the_same_tier(monkeypatch):
    told, append = [], Cache.append
    monkeypatch.setattr(Cache, "append", lambda cache, k, v, isa=None: told.append(isa) or append(cache, k, v, isa))
    with Cached(Decoder(1), 8, "scalar") as cached:
        corrupt._shifted(cached)
        cached.step(3)
    assert told == ["scalar"] * 4


# ---- what is told ----------------------------------------------------------------------------------------------------


def table(*runs):
    names = ("layout", "run", "first", "others", "before", "at", "same", "largest")
    return pd.DataFrame([dict(zip(names, run, strict=True)) for run in runs])


KEY, *_ = corrupt._FAULTS
HEALTHY = ("head", "healthy", np.nan, 0, 1e-6, 1e-6, 2e-6, 2e-6)


@pytest.mark.parametrize(
    ("runs", "margin", "said"),
    [
        ([HEALTHY], 1e-3, ["all 256 greedy tokens are those", "differ by 2.0e-06 at most", "leads by 1.0e-03 or more"]),
        ([HEALTHY], 3e-6, ["luck"]),
        ([("head", "healthy", 7.0, 3, 0, 0, 1, 1)], 1e-3, ["are not those", "head at step 7 of 256"]),
    ],
)
def test_a_healthy_cache_is_told(runs, margin, said):
    sentence = corrupt._healthy(table(*runs), margin, "f32")
    assert all(words in sentence for words in said), sentence


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (
            [("head", KEY, 70.0, 9, 1e-6, 0.5, 1, 1), ("paged", KEY, 70.0, 9, 1e-6, 0.5, 1, 1)],
            ["and the first other token is that of step 70"],
        ),
        ([("head", KEY, 70.0, 9, 0, 0.5, 1, 1), ("paged", KEY, 65.0, 9, 0, 0.1, 1, 1)], ["step 65 to 70, by layout"]),
        ([("head", KEY, 70.0, 9, 0, 0, 1, 1), ("paged", KEY, np.nan, 0, 0, 0, 1, 1)], ["1 of 2 layouts have none"]),
        ([("head", KEY, np.nan, 0, 1e-6, 2e-2, 1, 1)], ["2.0e-02 away", "and no token differs in 192 steps"]),
    ],
)
def test_a_fault_is_told(runs, said):
    sentence = corrupt._fault(KEY, table(*runs), table(HEALTHY))
    assert "healthy" not in sentence
    assert all(words in sentence for words in said), sentence


@pytest.mark.parametrize(("first", "said"), [(80.0, False), (107.0, True), (120.0, True)])
def test_a_fault_that_rounding_hides(first, said):
    """A healthy cache of this format says something else from step 107 on."""
    healthy = table(("head", "healthy", 107.0, 9, 1e-2, 1e-2, 1, 1))
    sentence = corrupt._fault(KEY, table(("head", KEY, first, 9, 1e-2, 1e-2, 1, 1)), healthy)
    assert ("by then a healthy one differs, too" in sentence) is said


def test_the_sum_of_a_run():
    steps = np.arange(256)
    own = pd.DataFrame({"step": steps, "token": 1, "naive_token": 1, "distance": 0.001, "layout": "head", "run": KEY})
    own.loc[own["step"] >= 64, "distance"] = 0.1
    own.loc[own["step"] == 80, "distance"] = 0.5
    own.loc[own["step"].isin([80, 90]), "token"] = 2
    own.loc[own["step"] == 200, "distance"] = 4.0
    assert corrupt._summary(own) == dict(
        layout="head", run=KEY, first=80, others=2, before=0.001, at=0.1, same=0.5, largest=4.0
    )
