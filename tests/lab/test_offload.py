"""Pages that leave and come back, and what is said of times that were made up."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import BadArgument, Refused, Unwritable, WrongAnswer
from kvbench.lab import tiers
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


def test_parts_too_odd_to_pass_the_page_cache_go_through_it(tmp_path, pool):
    with Arena(MIB) as arena, FileTier(pages(arena, 100), tmp_path, pool) as tier:
        assert "told to forget" in tier.about


def test_where_no_file_can_be(tmp_path, pool, monkeypatch):
    with Arena(MIB) as arena:
        view = pages(arena, 4096)
        (tmp_path / "taken").write_text("")
        with pytest.raises(Unwritable, match="cannot write"):
            FileTier(view, tmp_path / "taken" / "below", pool)
        room = os.statvfs(tmp_path)
        few = os.statvfs_result([*room[:4], 1, *room[5:]])
        monkeypatch.setattr(os, "statvfs", lambda _: few)
        with pytest.raises(Refused, match="no room for 120 KiB"):
            FileTier(view, tmp_path, pool)


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


def test_a_file_in_memory_is_called_that(tmp_path, pool, monkeypatch):
    mount = type("Mount", (), {"mountpoint": str(tmp_path), "fstype": "tmpfs"})
    monkeypatch.setattr(tiers.psutil, "disk_partitions", lambda **_: [mount])
    with Arena(MIB) as arena, FileTier(pages(arena, 4096), tmp_path / "below", pool) as tier:
        assert "tmpfs (this is memory, too)" in tier.about


# ---- what is said ----------------------------------------------------------------------------------------------------

KNOWN = model("qwen3-0.6b")
FACTS = lab.Facts(KNOWN, 64, 2 * 28 * 8 * 16 * 128 * 2, 4e9)  # f16, and 4 GFLOP for a call of the probe
PAGE_FLOPS = 28 * 16 * 2 * 1024 * 2 * (8 * 128)
TIERS = ("memory", "a file")


def times(memory=0.010, file=0.100, warm=0.020, fma=0.100, spread=0.02):
    """Seconds; a tier's are those of all pages, and a step's a share of it on top of a warm one."""

    def around(seconds):
        return [seconds * (1 + spread * wide) for wide in (-1, -0.5, 0, 0.5, 1)]

    taken = {lab.WARM: around(warm), lab.FMA: around(fma)}
    for tier, all_ in zip(TIERS, (memory, file), strict=True):
        taken |= {f"{tier} out": around(2 * all_), f"{tier} back": around(all_)}
        taken |= {f"{tier} {count}": around(warm + count / 64 * all_) for count in COUNTS}
    return taken


def said(facts=FACTS, counts=COUNTS, **changes):
    taken = times(**changes)
    return lab.sentence(lab.tabled(taken, facts, TIERS, counts), facts.even(taken))


def test_rates_and_factors():
    table = lab.tabled(times(), FACTS, TIERS, COUNTS)
    moves = table[table["does"] != lab.STEP].set_index(["tier", "does"])
    bytes_ = 64 * FACTS.page_bytes
    assert moves["gbps"]["memory", "back"] == pytest.approx(bytes_ / 0.010 / 1e9)
    assert moves["gbps"]["a file", "out"] == pytest.approx(bytes_ / 0.200 / 1e9)
    assert moves["gbps_low"]["memory", "back"] == pytest.approx(bytes_ / 0.0102 / 1e9)
    assert moves["gbps_high"]["memory", "back"] == pytest.approx(bytes_ / 0.0098 / 1e9)
    steps = table[table["does"] == lab.STEP].set_index(["tier", "cold"])
    assert steps["times"]["a file", 0.25] == pytest.approx((0.020 + 0.025) / 0.020)
    assert steps["moved"]["a file", 0.25] == 16 * FACTS.page_bytes
    assert steps["gbps"].isna().all() and moves["times"].isna().all()


def test_recomputing_is_the_projections_at_the_rate_of_the_probe():
    """4 GFLOP in 0.1 s are 40 GFLOP/s; f16 has two bytes of K and V for every 2 * hidden FLOP."""
    table = lab.tabled(times(), FACTS, TIERS, COUNTS).set_index(["tier", "cold"])
    assert table["seconds"][lab.AGAIN, 1.0] == pytest.approx(0.020 + 64 * PAGE_FLOPS / 40e9)
    assert FACTS.even(times()) == pytest.approx(40 * 2 / (2 * 1024))


def test_both_tiers_are_faster_than_recomputing():
    found = said()
    assert found.startswith(
        "Beside one that finds all pages in the cache, a decode step with 100% of them elsewhere takes 1.5 times as long "
        "from memory and 6 times as long from a file; "
    )
    rates = [64 * FACTS.page_bytes / seconds / 1e9 for seconds in (0.010, 0.100)]
    assert found.endswith(
        "beats recomputing it from 0.039 GB/s on, at the latest: "
        f"memory gives more ({rates[0]:.3g} GB/s) and a file gives more ({rates[1]:.3g} GB/s)."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file": 64 * FACTS.page_bytes / 0.02e9}, ("memory gives more", "a file gives less")),
        ({"file": 64 * FACTS.page_bytes / (40e9 * 2 / 2048)}, ("a file gives about that",)),
        ({"memory": 0.0001}, ("takes as long, as far as the noise lets it be told, from memory and 6 times",)),
    ],
)
def test_tiers_slower_or_as_fast_as_recomputing_and_what_the_noise_hides(changes, words):
    assert all(word in said(**changes) for word in words)


def test_without_a_hidden_size_there_is_no_break_even():
    facts = replace(FACTS, model=replace(KNOWN, hidden=0))
    assert said(facts).endswith("; what recomputing would take is not known without the model's hidden size.")
    assert lab.AGAIN not in set(lab.tabled(times(), facts, TIERS, COUNTS)["tier"])


def test_shares_are_of_whole_pages():
    """The smallest shares of four pages are one page, which is a quarter; it is moved once."""
    few = replace(FACTS, pages=4)
    assert few.cold((0.05, 0.10, 0.25, 0.50, 1.0)) == [1, 2, 4] and FACTS.cold((0.05,)) == [3]
    taken = times() | {f"{tier} {count}": [0.02] * 5 for tier in TIERS for count in (1, 2, 3, 4)}
    table = lab.tabled(taken, few, TIERS, few.cold((0.05, 0.10, 0.25, 0.50, 1.0)))
    own = table[(table["tier"] == "memory") & (table["does"] == lab.STEP)]
    assert list(own["cold"]) == [0.25, 0.5, 1.0] and list(own["moved"]) == [n * few.page_bytes for n in (1, 2, 4)]
    assert "with 4.69% of them" in lab.sentence(lab.tabled(taken, FACTS, TIERS, FACTS.cold((0.05,))), 1.0)


# ---- all of it -------------------------------------------------------------------------------------------------------


def test_a_small_run(asked, monkeypatch):
    monkeypatch.setattr(lab, "_MOST", 2)
    found = lab.experiment(asked, context=50, cold=0.5)
    steps = found.table[found.table["does"] == lab.STEP]
    assert list(steps["tier"]) == [lab.WARM, "memory", "a file", lab.AGAIN] and set(steps["cold"]) == {0.0, 0.5}
    assert (found.table["seconds"] > 0).all()
    assert set(steps["moved"]) == {0, 2 * 28 * 2 * 8 * 16 * 128 * 2}
    assert found.notes[0].startswith("4 pages of 16 tokens in all 28 layers, 1.75 MiB each, f16")
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
