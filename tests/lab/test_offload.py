"""Pages that leave and come back, and what is said of times that were made up."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import BadArgument, Refused, Unwritable, WrongAnswer
from kvbench.lab.experiment import Setup
from kvbench.lab.experiments import offload as lab
from kvbench.lab.tiers import FileTier, MemoryTier
from kvbench.machine import describe
from kvbench.native import Arena, default_library
from kvbench.suite import model

COUNTS = (16, 64)  # of 64 pages
MIB = 1 << 20


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def asked(tmp_path):
    library, cpu = default_library(), min(os.sched_getaffinity(0))
    return Setup(describe(), library, (cpu,), library.isa(), 1, tmp_path)


def pages(arena, each):
    """Three layers of five pages."""
    view = arena.view()[: 3 * 2 * 5 * each].reshape(3, 2, 5, each)
    view[:] = np.random.default_rng(1).integers(0, 256, view.shape, dtype=np.uint8)
    return view


def made(kind, view, folder, pool):
    return MemoryTier(view, default_library(), pool) if kind == "memory" else FileTier(view, folder, pool)


# ---- tiers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [4096, 100])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_pages_come_back_as_they_went(kind, each, tmp_path, pool):
    with Arena(MIB) as arena:
        view = pages(arena, each)
        before = view.copy()
        with made(kind, view, tmp_path, pool) as tier:
            tier.put(range(5))
            view[:] = 0
            tier.fetch([3, 1])
            assert np.array_equal(view[:, :, [1, 3]], before[:, :, [1, 3]])
            assert not view[:, :, [0, 2, 4]].any()
            tier.fetch(range(5))
            assert np.array_equal(view, before)
            view[:, :, 2] = 7
            tier.put([2])
            view[:, :, 2] = 0
            tier.fetch([2])
            assert (view[:, :, 2] == 7).all() and np.array_equal(view[:, :, [0, 1, 3, 4]], before[:, :, [0, 1, 3, 4]])
            assert not os.listdir(tmp_path), "a file without a name"


def test_where_no_file_can_be(tmp_path, pool):
    with Arena(MIB) as arena:
        (tmp_path / "taken").write_text("")
        with pytest.raises(Unwritable, match="cannot write"):
            FileTier(pages(arena, 4096), tmp_path / "taken" / "below", pool)


def test_a_disk_that_fills_up_or_ends_early(tmp_path, pool, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Arena(MIB) as arena, FileTier(pages(arena, 4096), tmp_path, pool) as tier:
        tier.put(range(5))
        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", lambda *_: 17)
            with pytest.raises(Unwritable, match="Input/output error"):
                tier.fetch([0])
        monkeypatch.setattr(os, "pwritev", full)
        with pytest.raises(Unwritable, match="No space left") as caught:
            tier.put([0])
        assert "make room" in caught.value.hint
    assert not os.listdir(tmp_path)


# ---- what is said ----------------------------------------------------------------------------------------------------

KNOWN = model("qwen3-0.6b")
FACTS = lab.Facts(KNOWN, 64, 2 * 28 * 8 * 16 * 128 * 2)  # f16
PAGE_FLOPS = 28 * 16 * 2 * 1024 * 2 * (8 * 128)
TIERS, SHARES = ("memory", "a file"), (0.25, 1.0)


def times(memory=0.010, file=0.100, warm=0.020, spread=0.02):
    """Seconds; a tier's are those of all pages, and a step's a share of it on top of a warm one. 40 GFLOP/s."""

    def around(seconds):
        return [seconds * (1 + spread * wide) for wide in (-1, -0.5, 0, 0, 0.5, 1)]

    taken = {lab.WARM: around(warm), lab.FMA: around(1 / 40e9)}
    for tier, all_ in zip(TIERS, (memory, file), strict=True):
        taken[f"{tier} {lab.BACK}"] = around(all_)
        taken |= {f"{tier} {count}": around(warm + count / 64 * all_) for count in FACTS.cold(SHARES)}
    return taken


def said(facts=FACTS, **changes):
    taken = times(**changes)
    return lab.sentence(lab.tabled(taken, facts, TIERS, SHARES), facts.even(taken))


def test_rates_and_factors():
    table = lab.tabled(times(), FACTS, TIERS, SHARES)
    moves = table[table["does"] == lab.BACK].set_index("tier")
    for name, seconds in {"gbps": 0.010, "gbps_low": 0.0102, "gbps_high": 0.0098}.items():
        assert moves[name]["memory"] == pytest.approx(64 * FACTS.page_bytes / seconds / 1e9)
    steps = table[table["does"] == lab.STEP].set_index(["tier", "cold"])
    assert steps["times"]["a file", 0.25] == pytest.approx((0.020 + 0.025) / 0.020)
    assert steps["moved"]["a file", 0.25] == 16 * FACTS.page_bytes
    assert steps["gbps"].isna().all() and moves["times"].isna().all()


def test_recomputing_is_the_projections_at_the_rate_of_the_probe():
    """40 GFLOP/s; f16 has two bytes of K and V for every 2 * hidden FLOP."""
    table = lab.tabled(times(), FACTS, TIERS, SHARES).set_index(["tier", "cold"])
    assert table["seconds"][lab.AGAIN, 1.0] == pytest.approx(0.020 + 64 * PAGE_FLOPS / 40e9)
    assert FACTS.even(times()) == pytest.approx(40 * 2 / (2 * 1024))


def test_both_tiers_are_faster_than_recomputing():
    rates = [64 * FACTS.page_bytes / seconds / 1e9 for seconds in (0.010, 0.100)]
    assert said() == (
        "A decode step with 100% of the pages elsewhere takes 1.5x as long from memory and 6x as long from a file. "
        "Fetching a page beats recomputing it above 0.039 GB/s: "
        f"memory gives more ({rates[0]:.3g} GB/s) and a file gives more ({rates[1]:.3g} GB/s)."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file": 64 * FACTS.page_bytes / 0.02e9}, ("memory gives more", "a file gives less")),
        ({"file": 64 * FACTS.page_bytes / (40e9 * 2 / 2048)}, ("a file gives about that",)),
        ({"memory": 0.0001}, ("takes as long from memory (within noise) and 6x",)),
    ],
)
def test_tiers_slower_or_as_fast_as_recomputing_and_what_the_noise_hides(changes, words):
    assert all(word in said(**changes) for word in words)


def test_without_a_hidden_size_there_is_no_break_even():
    facts = replace(FACTS, model=replace(KNOWN, hidden=0))
    assert "hidden size is not known" in said(facts)
    assert lab.AGAIN not in set(lab.tabled(times(), facts, TIERS, SHARES)["tier"])


def test_shares_are_of_whole_pages():
    """The smallest shares of four pages are one page, which is a quarter; it is moved once."""
    assert replace(FACTS, pages=4).cold((0.05, 0.10, 0.25, 0.50, 1.0)) == [1, 2, 4] and FACTS.cold((0.05,)) == [3]


# ---- all of it -------------------------------------------------------------------------------------------------------


def test_a_small_run(asked, monkeypatch):
    monkeypatch.setattr(lab, "_ROUNDS", 2)
    found = lab.experiment(asked, context=50, cold=0.5)
    steps = found.table[found.table["does"] == lab.STEP]
    assert list(steps["tier"]) == [lab.WARM, "memory", "a file", lab.AGAIN] and set(steps["cold"]) == {0.0, 0.5}
    assert (found.table["seconds"] > 0).all()
    assert set(steps["moved"]) == {0, 2 * 28 * 2 * 8 * 16 * 128 * 2}
    assert found.notes[0].startswith("4 pages of 16 tokens in 28 layers, 1.75 MiB each, f16")
    assert not os.listdir(asked.folder)


def test_other_bytes_are_no_outcome(asked, monkeypatch):
    monkeypatch.setattr(MemoryTier, "fetch", lambda *_: None)
    with pytest.raises(WrongAnswer, match="memory: pages came back with other bytes"):
        lab.experiment(asked, context=16)
    assert not os.listdir(asked.folder)


@pytest.mark.parametrize("cold", [0.0, 1.5])
def test_no_such_share(asked, cold):
    with pytest.raises(BadArgument, match="cold is"):
        lab.experiment(asked, context=16, cold=cold)


def test_what_does_not_fit_is_refused(asked, monkeypatch):
    monkeypatch.setattr("kvbench.lab.experiment.available_memory", lambda: MIB)
    with pytest.raises(Refused, match="1 MiB are free"):
        lab.experiment(asked, context=2048)
